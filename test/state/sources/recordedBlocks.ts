import { readFileSync } from "node:fs";
import { RLP } from "@ethereumjs/rlp";
import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import { runWriteSetJob } from "../../../src/state/sources/writeSetTask.ts";
import type { WriteSetJob, WriteSetJobOutput } from "../../../src/state/sources/writeSetThread.ts";
import { unpackWrites } from "../../../src/state/store/packedWrites.ts";
import type { AccountWrites } from "../../../src/state/writeSet.ts";
import type { StateTruth } from "../../support/state/stateTruth.ts";

/** A block of a real node, geth or anvil, with its diff trace, and the values of keys before and after it. */
export interface RecordedTrace {
  readonly name: string;
  readonly client: string;
  readonly what: string;
  readonly block: Readonly<Record<string, unknown>> & { readonly number: string; readonly hash: Hash };
  readonly trace: unknown;
  /** The trace with `disableCode`. */
  readonly traceWithoutCode?: unknown;
  /** The RLP of the block access list, if the header has its hash. */
  readonly accessList?: string;
  readonly before: StateTruth;
  readonly after: StateTruth;
}

const readLines = (client: string): readonly RecordedTrace[] =>
  readFileSync(new URL(`recorded/${client}.jsonl`, import.meta.url), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

const BLOCKS = new Map(["geth", "anvil"].flatMap(readLines).map((block) => [block.name, block]));

export const readRecorded = (name: string): RecordedTrace => {
  const recorded = BLOCKS.get(name);
  if (recorded === undefined) {
    throw new Error(`no block is recorded as ${name}`);
  }
  return recorded;
};

/** Names of all recorded blocks. */
export const recordedNames = (): readonly string[] => [...BLOCKS.keys()];

export const encodeJson = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));

/** The job that composes a block's trace. `change` replaces parts of it. */
export const traceJob = (
  { block, trace }: Pick<RecordedTrace, "block" | "trace">,
  change: Partial<WriteSetJob & { kind: "trace" }> = {},
): WriteSetJob => ({
  kind: "trace",
  block: { number: BigInt(block.number), hash: block.hash },
  body: encodeJson(block),
  trace: encodeJson(trace),
  contracts: [],
  ...change,
});

interface DiffItem {
  readonly txHash: Hash;
  readonly result: Readonly<Record<"pre" | "post", Readonly<Record<Address, { readonly nonce?: number }>>>>;
}

/**
 * Returns the block's call trace in geth's form. It was not recorded, but follows from the values before and after the block.
 * Each account whose nonce rose created an account that changed, and that no diff has.
 */
export const callTraceOf = ({ block, trace, before, after }: RecordedTrace): unknown => {
  const { transactions } = block as unknown as {
    readonly transactions: readonly { readonly from: Address; to: Address }[];
  };
  const items = trace as readonly DiffItem[];
  const traced = new Set(items.flatMap(({ result: { post } }) => Object.keys(post)));
  return items.map(({ txHash, result: { pre, post } }, index) => {
    const { from, to } = transactions[index] ?? {};
    const isChanged = (address: Address) => JSON.stringify(before[address]) !== JSON.stringify(after[address]);
    const changed = (Object.keys(after) as Address[]).filter(
      (address) => !traced.has(address) && (isChanged(address) || pre[address] !== undefined),
    );
    const creations = (Object.keys(post) as Address[]).flatMap((address) => {
      const rise = (post[address]?.nonce ?? 0) - (pre[address]?.nonce ?? 0);
      return address === from || pre[address] === undefined ? [] : Array<Address>(Math.max(0, rise)).fill(address);
    });
    const calls = [
      ...creations.map((creator, at) => ({ type: "CREATE2", from: creator, to: changed[at] })),
      ...changed.map((account) => ({ type: "SELFDESTRUCT", from: account, to: account })),
    ];
    return { txHash, result: { type: "CALL", from, to, calls: [{ type: "CALL", from, to, calls }] } };
  });
};

/** Composes a recorded block as the source does: with its calls if the diffs may leave out accounts. */
export const writesOfTrace = (recorded: RecordedTrace, trace = recorded.trace): ReadonlyMap<Address, AccountWrites> => {
  const job = traceJob({ ...recorded, trace });
  const isListed = runWriteSetJob(job).kind !== "unlisted";
  return writesOfJob(isListed ? job : traceJob({ ...recorded, trace }, { calls: encodeJson(callTraceOf(recorded)) }));
};

type Items = readonly unknown[];

const hex = (bytes: unknown): string => `0x${(bytes as Uint8Array).toHex()}`;
const word = (bytes: unknown): string => `0x${(bytes as Uint8Array).toHex().padStart(64, "0")}`;
const index = (bytes: unknown): string => `0x${(bytes as Uint8Array).toHex() || "0"}`;
const list = (items: unknown): readonly Items[] => items as readonly Items[];

/** Formats the RLP of a block access list as eth_getBlockAccessList returns it. Source: execution-apis, src/schemas/block-access-list.yaml. */
export const formatAccessList = (rlp: string): unknown =>
  list(RLP.decode(rlp)).map(([address, storage, reads, balances, nonces, codes]) => ({
    address: hex(address),
    storageChanges: list(storage).map(([key, changes]) => ({
      key: word(key),
      changes: list(changes).map(([at, value]) => ({ index: index(at), value: word(value) })),
    })),
    storageReads: (reads as Items).map(word),
    balanceChanges: list(balances).map(([at, value]) => ({ index: index(at), value: index(value) })),
    nonceChanges: list(nonces).map(([at, value]) => ({ index: index(at), value: index(value) })),
    codeChanges: list(codes).map(([at, code]) => ({ index: index(at), code: hex(code) })),
  }));

/** The job that checks a block access list. */
export const accessListJob = (
  { block, accessList = "0xc0" }: RecordedTrace,
  change: Partial<WriteSetJob & { kind: "accessList" }> = {},
): WriteSetJob => ({
  kind: "accessList",
  block: { number: BigInt(block.number), hash: block.hash },
  header: block,
  list: encodeJson(formatAccessList(accessList)),
  ...change,
});

/** Returns the writes of a job that succeeds. */
export const writesOfJob = (job: WriteSetJob): ReadonlyMap<Address, AccountWrites> => {
  const output: WriteSetJobOutput = runWriteSetJob(job);
  if (output.kind !== "written") {
    throw new Error(`no write set: ${JSON.stringify(output)}`);
  }
  return unpackWrites(output.packed);
};
