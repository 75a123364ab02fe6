import assert from "node:assert/strict";
import { test } from "node:test";
import { CallBudget } from "../../src/nodes/callAdmission.ts";

test("the requests of one second are sent at once, later ones at even intervals", () => {
  let nowMs = 0;
  const budget = new CallBudget(10, { pauseMs: 0 }, () => nowMs);
  assert.deepEqual(
    Array.from({ length: 10 }, () => budget.take(1)),
    Array.from({ length: 10 }, () => 0),
  );
  assert.deepEqual([budget.take(1), budget.take(1)], [100, 200]);
  nowMs = 60_000;
  assert.equal(budget.take(10), 0);
  assert.equal(budget.delayMs, 100);
});

test("requests without a budget do not wait, and a pause delays them until it ends", () => {
  const state = { pauseMs: 0 };
  const budget = new CallBudget(undefined, state);
  assert.equal(budget.take(1_000_000), 0);
  state.pauseMs = 2_000;
  assert.equal(budget.delayMs, 2_000);
  state.pauseMs = 0;
  assert.equal(budget.delayMs, 0);
});
