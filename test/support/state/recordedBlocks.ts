import { readFileSync } from "node:fs";
import { RLP } from "@ethereumjs/rlp";
import type { Address } from "../../../src/ethereum/hex.ts";
import { unpackWrites } from "../../../src/state/sources/packedWrites.ts";
import type { WriteSetJob, WriteSetJobOutput } from "../../../src/state/sources/writeSetJobs.ts";
import { runWriteSetJob } from "../../../src/state/sources/writeSetTask.ts";
import type { AccountWrites } from "../../../src/state/writeSet.ts";
import { runAll } from "../builders/runAll.ts";
import type { RecordedTrace } from "./recordTraces.ts";

const readLines = (client: string): readonly RecordedTrace[] =>
  readFileSync(new URL(`../../state/sources/recorded/${client}.jsonl`, import.meta.url), "utf8")
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
  return runAll(unpackWrites(output.packed));
};
