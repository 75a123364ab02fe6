import assert from "node:assert/strict";
import { test } from "node:test";
import { RetryBudget } from "../../src/nodes/retryBudget.ts";

const createBudget = () => {
  const time = { ms: 0 };
  const budget = new RetryBudget({ nowMs: () => time.ms, sleep: async () => undefined });
  const takeAll = (): number => {
    let taken = 0;
    while (budget.take()) {
      taken += 1;
    }
    return taken;
  };
  return { time, budget, takeAll };
};

test("hedges and further retries are a fifth of the reads of the last ten seconds", () => {
  const { time, budget, takeAll } = createBudget();
  for (let second = 0; second < 10; second += 1) {
    time.ms = second * 1_000;
    for (let read = 0; read < 100; read += 1) {
      budget.recordRead();
    }
  }
  assert.equal(takeAll(), 200);
  time.ms = 10_000;
  assert.equal(takeAll(), 0, "the oldest second is forgotten, and the sends are not");
  for (let read = 0; read < 200; read += 1) {
    budget.recordRead();
  }
  assert.equal(takeAll(), 20);
  time.ms = 25_000;
  assert.equal(takeAll(), 100);
});

test("a chain with few reads has ten hedges and further retries a second", () => {
  const { budget, takeAll } = createBudget();
  budget.recordRead();
  assert.equal(takeAll(), 100);
});
