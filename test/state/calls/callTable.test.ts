import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../../src/core/heads.ts";
import { type CallReads, type CallResult, gradeAt, resultHeader } from "../../../src/state/calls/callResult.ts";
import { CallTable, type CallTableOptions, type Refusal } from "../../../src/state/calls/callTable.ts";
import type { StoredAnswer } from "../../../src/state/calls/storedAnswers.ts";
import { UsedValues } from "../../../src/state/store/usedValues.ts";
import { createTelemetry } from "../../../src/telemetry/telemetry.ts";
import { hashOf } from "../../support/builders/heads.ts";

const block = (number: number): BlockId => ({ number: BigInt(number), hash: hashOf(number) });

/** Creates a table. `written`: the blocks that wrote what calls read. */
const createTable = (changed: Partial<CallTableOptions> = {}, written: readonly number[] = []): CallTable =>
  new CallTable({
    values: {
      ...{
        used: new UsedValues(),
        isTrusted: true,
        maxReadable: 256,
        get: () => undefined,
        isApplied: () => true,
        isProvenSince: () => true,
      },
      isWrittenSince: (_, since, at) => written.some((number) => number > since.number && number <= at.number),
    },
    follower: { generation: 0 },
    ...{ chain: "chain", maxBytes: 100_000, telemetry: createTelemetry({ level: "silent" }) },
    onCleared: () => undefined,
    ...changed,
  });

const HEADER = { feeRecipient: "0xfe", gasLimit: "0x1" };
const READS: CallReads = {
  keys: [{ field: "balance", address: "0xa", slot: undefined }],
  ...{ emptiness: [], addresses: new Set(["0xa"] as const), blockOpcodes: new Set() },
};
const answerAt = (number: number, change: Partial<CallResult> = {}): CallResult => ({
  ...{ body: new Uint8Array(1), block: block(number), reads: READS, header: HEADER, generation: 0, node: "node" },
  ...{ isRepeatable: true, ...change },
});
const headsOf = (miner = "0xfe") => ({ header: () => ({ miner, gasLimit: "0x1" }) });

/** Stores answers as if they were learned. */
const learn = (table: CallTable, answers: Readonly<Record<string, CallResult>>): void => {
  for (const [key, answer] of Object.entries(answers)) {
    table.record(key, undefined, "eth_call", block(1));
    table.record(key, undefined, "eth_call", block(2));
    table.store({ key, method: "eth_call" }, answer, "learned");
  }
};

test("an answer of a snapshot is not proven, although it was", () => {
  const table = createTable();
  const values = { isProvenSince: () => true, isWrittenSince: () => false };
  const answer = answerAt(3, { grade: "proven" });
  assert.equal(gradeAt(answer, block(4), values), "proven");
  table.restore({ key: "call", method: "eth_call", answer, isValid: true }, block(4), HEADER);
  const restored = table.get("call")?.answer;
  assert.ok(restored !== undefined);
  assert.equal(gradeAt(restored, block(4), values), "checked");
});

test("a proven answer stays proven up to the first block whose write set is not", () => {
  const values = { isProvenSince: (_: BlockId, at: BlockId) => at.number < 5n, isWrittenSince: () => false };
  const answer = answerAt(3, { grade: "proven" });
  assert.equal(gradeAt(answer, block(4), values), "proven");
  assert.equal(gradeAt(answer, block(5), values), "checked");
});

test("stored answers are those that hold at the block, and those that can be executed again", () => {
  const table = createTable({}, [5]);
  learn(table, {
    old: answerAt(3),
    oldOnce: answerAt(3, { isRepeatable: false }),
    valid: answerAt(6, { isRepeatable: false }),
    newer: answerAt(9),
    dropped: answerAt(6, { generation: 1 }),
  });
  const stored = [...table.answersAt(block(8), headsOf())].filter((answer) => answer !== undefined);
  assert.deepEqual(
    stored.map(({ key, isValid }) => [key, isValid]),
    [
      ["valid", true],
      ["old", false],
    ],
  );
});

test("a restored answer holds at the block of the values, if it was valid and its header says the same", () => {
  const stored = { key: "call", method: "eth_call", answer: answerAt(6), isValid: true } as const;
  const restoredAt = (
    change: Partial<StoredAnswer>,
    miner = "0xfe",
    header = resultHeader(headsOf(miner).header()),
  ) => {
    const table = createTable({ follower: { generation: 7 } });
    table.restore({ ...stored, ...change }, block(8), header);
    return table.get("call")?.answer;
  };
  const restored = { generation: 7, grade: "checked" as const };
  assert.deepEqual(restoredAt({}), answerAt(8, restored));
  assert.deepEqual(restoredAt({ isValid: false }), answerAt(6, restored));
  const reads = { ...READS, addresses: new Set(["0xa", "0xfe"] as const) };
  assert.equal(restoredAt({ answer: answerAt(6, { reads }) }, "0xff")?.block.number, 6n);
  // The block is not canonical any more.
  const orphaned = createTable();
  orphaned.restore(stored, block(8), undefined);
  assert.equal(orphaned.get("call")?.answer?.block.number, 6n);
});

test("a restored answer does not replace one that was learned since", () => {
  const table = createTable();
  learn(table, { call: answerAt(9) });
  table.restore({ key: "call", method: "eth_call", answer: answerAt(6), isValid: true }, block(8), HEADER);
  assert.equal(table.get("call")?.answer?.block.number, 9n);
});

test("clearing the answers is reported once, when they are gone", () => {
  let cleared = 0;
  const table = createTable({
    onCleared: () => {
      assert.equal(table.get("call"), undefined, "the answers are cleared first");
      cleared++;
    },
  });
  for (const number of [1, 2]) {
    table.record("call", table.get("call"), "eth_call", block(number));
  }
  assert.ok(table.get("call"));
  table.clear();
  assert.equal(cleared, 1);
});

test("a call that cannot be learned is tried again after 30 s, then a minute, and at the next block if that was chance", () => {
  const clock = { nowMs: 0 };
  const table = createTable({
    nowMs: () => clock.nowMs,
  });
  for (const number of [1, 2]) {
    table.record("call", table.get("call"), "eth_call", block(number));
  }
  const entry = table.get("call");
  assert.ok(entry);
  const refuse = (number: number, refusal: Refusal, requiresProof = false) =>
    table.refuse({ key: "call", method: "eth_call", block: block(number), requiresProof }, refusal);
  for (const byChance of [() => refuse(2, "late"), () => refuse(2, "mismatch", true)]) {
    byChance();
    assert.deepEqual([table.mayLearn(entry, block(2)), table.mayLearn(entry, block(3))], [false, true]);
  }
  for (const waitMs of [30_000, 60_000]) {
    refuse(3, "mismatch");
    clock.nowMs += waitMs - 1;
    assert.equal(table.mayLearn(entry, block(1_000)), false);
    clock.nowMs += 1;
    assert.equal(table.mayLearn(entry, block(1_000)), true);
  }
});

test("a call whose required proofs were too expensive is tried again after five seconds, any other at the next block", () => {
  let nowMs = 0;
  const table = createTable({ nowMs: () => nowMs });
  learn(table, { required: answerAt(3), other: answerAt(3) });
  for (const key of ["required", "other"]) {
    table.refuse({ key, method: "eth_call", block: block(4), requiresProof: key === "required" }, "budget");
  }
  const mayLearn = (key: string, number: number): boolean => {
    const entry = table.get(key);
    assert.ok(entry !== undefined);
    return table.mayLearn(entry, block(number));
  };
  assert.deepEqual([mayLearn("required", 5), mayLearn("other", 5), mayLearn("other", 4)], [false, true, false]);
  nowMs = 5_000;
  assert.equal(mayLearn("required", 5), true);
});
