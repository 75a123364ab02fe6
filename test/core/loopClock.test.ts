import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { LoopClock } from "../../src/core/loopClock.ts";

const start = (t: TestContext) => {
  const ending = new AbortController();
  t.after(() => ending.abort());
  return { clock: new LoopClock(ending.signal), signal: ending.signal };
};

/** Blocks the event loop. */
const block = (forMs: number): void => {
  const endMs = performance.now() + forMs;
  while (performance.now() < endMs) {}
};

test("time in which the event loop stood still is not counted, before and after the next tick", async (t) => {
  const { clock } = start(t);
  await sleep(150);
  const beforeMs = clock.nowMs();
  block(900);
  assert.ok(clock.nowMs() - beforeMs <= 200, "while the loop stands still");
  await sleep(0);
  assert.ok(clock.nowMs() - beforeMs <= 450, "after it");
  const nextMs = clock.nowMs();
  block(60);
  await sleep(0);
  assert.ok(clock.nowMs() - nextMs >= 60, "short turns are counted");
});

test("a wait goes on for the time in which the event loop stood still", async (t) => {
  const { clock, signal } = start(t);
  await sleep(150);
  const startMs = performance.now();
  const waiting = clock.sleep(500, signal);
  block(900);
  await waiting;
  assert.ok(performance.now() - startMs >= 1_150, `${performance.now() - startMs} ms`);
});

test("a wait ends when its signal is aborted", async (t) => {
  const { clock } = start(t);
  const waiting = new AbortController();
  const slept = clock.sleep(60_000, waiting.signal);
  waiting.abort();
  await slept;
});
