import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { TurnClock } from "../../src/jsonrpc/turnClock.ts";

/** Uses the CPU, as parsing a large body does. */
const spin = (ms: number): void => {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs) {
    // Time passes.
  }
};

test("a turn that began before its first call has less time for calls, and the next turn has all", async () => {
  const clock = new TurnClock();
  clock.begin();
  spin(10);
  assert.equal(clock.isOver, true);
  await nextTurn();
  assert.equal(clock.isOver, false);
  spin(10);
  assert.equal(clock.isOver, true);
});
