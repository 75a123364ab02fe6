import assert from "node:assert/strict";
import { test } from "node:test";
import { CallRate } from "../../src/nodes/sendLimits.ts";

test("the calls of one second are sent at once, later ones at even intervals", () => {
  let nowMs = 0;
  const rate = new CallRate(10, () => nowMs);
  assert.deepEqual([rate.calls, rate.waitMs], [10, 0]);
  rate.spend(12);
  assert.deepEqual([rate.calls, rate.waitMs], [0, 300]);
  nowMs = 300;
  assert.deepEqual([rate.calls, rate.waitMs], [1, 0]);
  nowMs = 60_000;
  assert.equal(rate.calls, 10);
});

test("without a rate no call waits", () => {
  const rate = new CallRate(undefined);
  rate.spend(1_000_000);
  assert.deepEqual([rate.calls, rate.waitMs], [Number.POSITIVE_INFINITY, 0]);
});
