import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../../src/core/heads.ts";
import { CallTable, type LearnCandidate, type Refusal } from "../../../src/state/calls/callTable.ts";
import { createTelemetry } from "../../../src/telemetry/telemetry.ts";
import { hashOf } from "../../support/builders/heads.ts";
import { createCost } from "../costRig.ts";

const CANDIDATE: LearnCandidate = {
  ...{ key: "", method: "eth_call", body: new Uint8Array(0), block: { number: 0n, hash: hashOf(0) } },
  ...{ node: "node", generation: 0, clientId: "client", expected: undefined },
};
const block = (number: number): BlockId => ({ number: BigInt(number), hash: hashOf(number) });

test("clearing the answers also clears the copies in other processes", () => {
  let cleared = 0;
  const table = new CallTable({
    values: {
      isTrusted: true,
      maxReadable: 256,
      get: () => undefined,
      isApplied: () => true,
      isWrittenSince: () => false,
    },
    follower: { generation: 0 },
    ...{ chain: "chain", maxBytes: 100_000, cost: createCost().cost, telemetry: createTelemetry({ level: "silent" }) },
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
  const table = new CallTable({
    values: {
      isTrusted: true,
      maxReadable: 256,
      get: () => undefined,
      isApplied: () => true,
      isWrittenSince: () => false,
    },
    follower: { generation: 0 },
    ...{ chain: "chain", maxBytes: 100_000, cost: createCost().cost, telemetry: createTelemetry({ level: "silent" }) },
    nowMs: () => clock.nowMs,
    onCleared: () => undefined,
  });
  for (const number of [1, 2]) {
    table.record("call", table.get("call"), "eth_call", block(number));
  }
  const entry = table.get("call");
  assert.ok(entry);
  const refuse = (number: number, refusal: Refusal) =>
    table.refuse({ ...CANDIDATE, key: "call", block: block(number) }, refusal);
  refuse(2, "late");
  assert.deepEqual([table.mayLearn(entry, block(2)), table.mayLearn(entry, block(3))], [false, true]);
  for (const waitMs of [30_000, 60_000]) {
    refuse(3, "mismatch");
    clock.nowMs += waitMs - 1;
    assert.equal(table.mayLearn(entry, block(1_000)), false);
    clock.nowMs += 1;
    assert.equal(table.mayLearn(entry, block(1_000)), true);
  }
});
