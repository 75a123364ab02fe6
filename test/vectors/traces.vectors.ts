import assert from "node:assert/strict";
import { test } from "node:test";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { writesOfAccessList } from "../../src/state/sources/accessListWrites.ts";
import { runWriteSetJob } from "../../src/state/sources/writeSetTask.ts";
import type { AccountWrites, Written } from "../../src/state/writeSet.ts";
import { parseBlockAccessList } from "../../src/verification/blockAccessList.ts";
import { encodeJson, traceJob, writesOfJob } from "../state/sources/recordedBlocks.ts";
import { xzText } from "./xzText.ts";

interface Line {
  readonly block: number;
  readonly method: string;
  readonly use?: string;
  readonly result: unknown;
}

interface Change {
  readonly index: string;
}

interface ListedAccount {
  readonly address: Address;
  readonly balanceChanges: readonly Change[];
  readonly nonceChanges: readonly Change[];
  readonly codeChanges: readonly Change[];
}

interface DiffItem {
  readonly txHash: Hash;
  readonly result: Readonly<Record<"pre" | "post", Readonly<Record<Address, { readonly nonce?: number }>>>>;
}

interface VectorBlock {
  readonly block: Readonly<Record<string, unknown>> & { readonly number: string; readonly hash: Hash };
  readonly trace: readonly DiffItem[];
  readonly accessList: readonly ListedAccount[] | undefined;
}

/** Reads the blocks of a file of proof vectors that were traced, by number. */
const readBlocks = (file: string): readonly VectorBlock[] => {
  const lines = xzText(`proofs/${file}`)
    .trim()
    .split("\n")
    .map((line): Line => JSON.parse(line));
  const traced = lines.filter(({ method }) => method === "debug_traceBlockByHash");
  return traced.map(({ block: number, result }) => {
    const find = (wanted: string) =>
      lines.find(({ block, method, use }) => block === number && method === wanted && use === undefined)?.result;
    return {
      block: find("eth_getBlockByNumber") as VectorBlock["block"],
      trace: result as readonly DiffItem[],
      accessList: find("eth_getBlockAccessList") as readonly ListedAccount[] | undefined,
    };
  });
};

/** Returns the accounts that the access list has as written by a transaction, and its diff does not have. */
const leftOut = ({ trace, accessList = [] }: VectorBlock, index: number): readonly Address[] =>
  accessList
    .filter(({ balanceChanges, nonceChanges, codeChanges }) =>
      [balanceChanges, nonceChanges, codeChanges].flat().some((change) => Number(change.index) === index + 1),
    )
    .map(({ address }) => address)
    .filter((address) => trace[index]?.result.post[address] === undefined);

/** Returns a call trace that names exactly these accounts, and has a creation for each nonce. It was not recorded. */
const callTraceOf = (vector: VectorBlock): unknown =>
  vector.trace.map(({ txHash, result: { pre, post } }, index) => {
    const creations = Object.entries(post).flatMap(([address, { nonce = 0 }]) =>
      Array(Math.max(0, nonce - (pre[address as Address]?.nonce ?? 0))).fill({ type: "CREATE", from: address }),
    );
    const destructed = leftOut(vector, index).map((address) => ({ type: "SELFDESTRUCT", from: address }));
    return { txHash, result: { type: "CALL", calls: [...creations, ...destructed] } };
  });

type Value = Written<bigint | Uint8Array> | undefined;

const textOf = (value: Value): string => (value instanceof Uint8Array ? value.toHex() : String(value));
const isRight = (actual: Value, expected: Value): boolean =>
  actual === "unknown" || textOf(actual) === textOf(expected);

const wrongOf = (
  actual: AccountWrites | undefined,
  { balance, nonce, code, slots }: AccountWrites,
): readonly string[] => [
  ...(balance === undefined || isRight(actual?.balance, balance) ? [] : ["balance"]),
  ...(nonce === undefined || isRight(actual?.nonce, nonce) ? [] : ["nonce"]),
  ...(code === undefined || isRight(actual?.code, code) ? [] : ["code"]),
  ...[...slots]
    .filter(([slot, value]) => actual?.otherSlots !== "unknown" && !isRight(actual?.slots.get(slot), value))
    .map(([slot]) => slot),
];

for (const vector of readBlocks("amsterdam.jsonl.xz")) {
  const { block, trace, accessList } = vector;
  const hidden = trace.flatMap((_, index) => leftOut(vector, index));
  test(`traces/amsterdam ${Number(block.number)}: a diff that leaves out ${hidden.length} accounts needs calls`, () => {
    const output = runWriteSetJob(traceJob({ block, trace }));
    if (hidden.length > 0) {
      assert.equal(output.kind, "unlisted");
    }
    const composed = writesOfJob(traceJob({ block, trace }, { calls: encodeJson(callTraceOf(vector)) }));
    for (const [address, writes] of writesOfAccessList(parseBlockAccessList(accessList))) {
      assert.deepEqual(wrongOf(composed.get(address), writes), [], address);
    }
  });
}

for (const { block, trace } of readBlocks("osaka.jsonl.xz")) {
  test(`traces/osaka ${Number(block.number)}: the calls are asked if a transaction creates and destroys`, () => {
    const output = runWriteSetJob(traceJob({ block, trace }));
    assert.equal(output.kind, trace.length > 1 ? "unlisted" : "written");
  });
}
