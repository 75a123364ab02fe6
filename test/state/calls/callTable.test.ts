import assert from "node:assert/strict";
import { test } from "node:test";
import type { Grade } from "../../../src/core/grade.ts";
import type { BlockId } from "../../../src/core/heads.ts";
import { type CallReads, type CallResult, gradeAt } from "../../../src/state/calls/callResult.ts";
import { CallTable, type CallTableOptions, type Refusal } from "../../../src/state/calls/callTable.ts";
import { formatStoredCall, parseStoredCall, type StoredCall } from "../../../src/state/calls/storedCall.ts";
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
        isChecked: true,
        maxReadable: 256,
        get: () => undefined,
        isApplied: () => true,
        gradeSince: () => "proven" as const,
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
  ...{ isRepeatable: true, grade: "checked" as const, ...change },
});

/** Stores answers as if they were learned. */
const learn = (table: CallTable, answers: Readonly<Record<string, CallResult>>): void => {
  for (const [key, answer] of Object.entries(answers)) {
    table.record(key, undefined, "eth_call", block(1));
    table.record(key, undefined, "eth_call", block(2));
    table.store({ key, method: "eth_call" }, answer, "learned");
  }
};

test("a proven answer stays proven up to the first block whose write set is not", () => {
  const gradeSince = (_: BlockId, at: BlockId) => (at.number < 5n ? "proven" : "stated");
  const values = { gradeSince, isWrittenSince: () => false };
  const answer = answerAt(3, { grade: "proven" });
  assert.equal(gradeAt(answer, block(4), values), "proven");
  assert.equal(gradeAt(answer, block(5), values), "stated");
});

const STORED: StoredCall = { key: '["eth_call",[{"to":"0xa"}]]', method: "eth_call", node: "node", reads: READS };

test("calls that can be executed again are stored, and no result is", () => {
  const table = createTable();
  learn(table, {
    [STORED.key]: answerAt(3),
    once: answerAt(3, { isRepeatable: false }),
    dropped: answerAt(6, { generation: 1 }),
  });
  assert.deepEqual(
    [...table.calls()].filter((call) => call !== undefined),
    [STORED],
  );
});

test("a restored call has no answer for any block, and does not replace one that was learned", () => {
  const table = createTable({ follower: { generation: 7 } });
  table.restore(STORED);
  const entry = table.get(STORED.key) ?? assert.fail();
  assert.equal(entry.answer?.generation, 7);
  assert.equal(entry.answer.isRepeatable, true);
  const other = createTable();
  learn(other, { [STORED.key]: answerAt(9) });
  other.restore(STORED);
  assert.equal(other.get(STORED.key)?.answer?.block.number, 9n);
});

test("a call is parsed as it was formatted, and other bytes are none", () => {
  const address = `0x${"0a".repeat(20)}` as const;
  const keys = [
    { field: "balance", address, slot: undefined },
    { field: "slot", address, slot: hashOf(1) },
  ] as const;
  const reads: CallReads = {
    keys,
    emptiness: [address],
    addresses: new Set([address]),
    blockOpcodes: new Set(["NUMBER"]),
  };
  const call = { ...STORED, reads };
  assert.deepEqual(parseStoredCall(formatStoredCall(call)), call);
  assert.equal(parseStoredCall(formatStoredCall({ ...call, key: "eth_call" })), undefined);
  assert.equal(parseStoredCall(new TextEncoder().encode("{}")), undefined);
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
  const refuse = (number: number, refusal: Refusal, needs: Grade = "stated") =>
    table.refuse({ key: "call", method: "eth_call", block: block(number), needs }, refusal);
  for (const byChance of [() => refuse(2, "late"), () => refuse(2, "mismatch", "proven")]) {
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
    table.refuse(
      { key, method: "eth_call", block: block(4), needs: key === "required" ? "proven" : "stated" },
      "budget",
    );
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
