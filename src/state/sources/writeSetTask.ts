import { type Hash, isHash, ZERO_HASH } from "../../ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../ethereum/keccak.ts";
import { asText } from "../../json/jsonBytes.ts";
import { Channel } from "../../threads/channel.ts";
import type { ThreadTask } from "../../threads/threadTask.ts";
import type { JobFunctions } from "../../threads/workerSlot.ts";
import { hashBlockAccessList, parseBlockAccessList } from "../../verification/blockAccessList.ts";
import { checkHeader } from "../../verification/checkHeader.ts";
import { fieldsOf, isSame, listOf, MalformedField, numberOf } from "../../verification/jsonFields.ts";
import { packWrites } from "../store/packedWrites.ts";
import { writesOfAccessList } from "./accessListWrites.ts";
import { composeTrace, UnlistedAccounts } from "./composeTrace.ts";
import { parseTracedBlock, type TracedBlock } from "./tracedBlock.ts";
import {
  NoDiff,
  parseCallTrace,
  parseTransactionDiff,
  type TransactionDiff,
  UntracedTransaction,
} from "./traceTexts.ts";
import { runWitness } from "./witnessJob.ts";
import type { TracedCodes, WriteSetJob, WriteSetJobOutput } from "./writeSetThread.ts";

type JobOf<Kind extends WriteSetJob["kind"]> = WriteSetJob & { readonly kind: Kind };

const parseJson = (bytes: Uint8Array): unknown => JSON.parse(asText(bytes));

/** The items of a trace without that of a post-exec transaction. */
const itemsOf = (trace: Uint8Array, postExec: TracedBlock["postExec"]): readonly unknown[] =>
  listOf(parseJson(trace)).filter((item) => postExec === undefined || !isSame(fieldsOf(item).txHash, postExec.hash));

const codesOf = (diffs: readonly TransactionDiff[]): TracedCodes | undefined => {
  const accounts = diffs.flatMap(({ post }) => [...post]);
  if (accounts.some(([, { code, codeHash }]) => code !== undefined && codeHash === undefined)) {
    return "missing";
  }
  const codes = accounts.flatMap(([address, { codeHash }]) =>
    codeHash === undefined || codeHash === EMPTY_CODE_HASH || codeHash === ZERO_HASH
      ? []
      : [[address, codeHash] as const],
  );
  return codes.length === 0 ? undefined : codes;
};

const runTrace = (job: JobOf<"trace">): WriteSetJobOutput => {
  const { body, trace, contracts, blobs } = job;
  const block = parseTracedBlock(body, job.block);
  if (block === undefined) {
    return { kind: "failed", reason: "mismatch" };
  }
  const diffs = itemsOf(trace, block.postExec).map(parseTransactionDiff);
  const calls = job.calls && parseCallTrace(itemsOf(job.calls, block.postExec));
  try {
    const packed = packWrites(composeTrace({ diffs, block, calls, contracts, blobs }));
    const codes = codesOf(diffs);
    return { kind: "written", packed, ...(codes === undefined ? {} : { codes }) };
  } catch (error) {
    if (error instanceof UnlistedAccounts) {
      return calls === undefined ? { kind: "unlisted" } : { kind: "failed", reason: "unlisted" };
    }
    throw error;
  }
};

/** Returns the header's hash of the access list if the block's hash commits to it. */
const committedHash = ({ header, block }: JobOf<"accessList">): Hash | undefined => {
  const { blockAccessListHash, number, hash } = header;
  const isOfBlock = isSame(hash, block.hash) && numberOf(number) === block.number;
  return isOfBlock && isHash(blockAccessListHash) && checkHeader(header).outcome === "passed"
    ? blockAccessListHash
    : undefined;
};

const runAccessList = (job: JobOf<"accessList">): WriteSetJobOutput => {
  const expected = committedHash(job);
  const list = parseBlockAccessList(parseJson(job.list));
  if (expected === undefined || !isSame(expected, hashBlockAccessList(list))) {
    return { kind: "failed", reason: "mismatch" };
  }
  return { kind: "written", packed: packWrites(writesOfAccessList(list)) };
};

const runJob = (job: WriteSetJob): WriteSetJobOutput => {
  switch (job.kind) {
    case "trace":
      return runTrace(job);
    case "accessList":
      return runAccessList(job);
    case "witness":
      return runWitness(job);
    case "codeHashes":
      return { kind: "codeHashes", codes: codesOf(itemsOf(job.trace, undefined).map(parseTransactionDiff)) };
  }
};

/** Runs one job. A response that a node must not send is a failure. */
export const runWriteSetJob = (job: WriteSetJob): WriteSetJobOutput => {
  try {
    return runJob(job);
  } catch (error) {
    if (error instanceof NoDiff) {
      return { kind: "failed", reason: "unsupported" };
    }
    if (error instanceof UntracedTransaction) {
      return { kind: "failed", reason: "incomplete" };
    }
    if (error instanceof MalformedField || error instanceof SyntaxError) {
      return { kind: "failed", reason: "mismatch" };
    }
    throw error;
  }
};

/** The code of a thread that turns responses of nodes into write sets. */
export const writeSetTask: ThreadTask = (port) => {
  new Channel<Record<string, never>, JobFunctions>(port, { run: (job) => runWriteSetJob(job as WriteSetJob) });
};
