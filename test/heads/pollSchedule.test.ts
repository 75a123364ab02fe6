import assert from "node:assert/strict";
import { test } from "node:test";
import { nextPollMs, type PollSchedule } from "../../src/heads/pollSchedule.ts";

/** The last poll read a new block at 10,000 ms. Block time is 2 s, and a client sent a request just now. */
const schedule = (more: Partial<PollSchedule> = {}): PollSchedule => ({
  blockTimeMs: 2_000,
  lastRequestMs: 10_000,
  polledMs: 10_000,
  newHeadMs: 10_000,
  foundByFirstPoll: false,
  pushedMs: undefined,
  native: false,
  hasFeed: false,
  ...more,
});

const NOW_MS = 10_100;
const CASES: readonly [string, Partial<PollSchedule>, number][] = [
  ["when the next block is due", {}, 12_000],
  ["a quarter of a block time later if the block is late", { polledMs: 12_000 }, 12_500],
  ["250 ms later on a fast chain", { polledMs: 12_000, blockTimeMs: 200 }, 12_250],
  ["900 ms later on a slow chain", { polledMs: 30_000, blockTimeMs: 12_000 }, 30_900],
  ["half a step earlier if the previous poll found its block at once", { foundByFirstPoll: true }, 11_750],
  ["once per block time without clients", { lastRequestMs: -20_000 }, 12_000],
  ["once per block time without clients on a slow chain", { lastRequestMs: -20_000, blockTimeMs: 12_000 }, 22_000],
  ["after 2 s without clients on a fast chain", { lastRequestMs: -20_000, blockTimeMs: 200 }, 12_000],
  ["once per block of a feed's chain", { lastRequestMs: -20_000, blockTimeMs: 1_000, hasFeed: true }, 11_000],
  ["once per block in mode native", { native: true, polledMs: 12_000, blockTimeMs: 200 }, 12_200],
  ["after three block times without a pushed head", { pushedMs: 10_000 }, 16_000],
  ["after 5 s without a pushed head on a fast chain", { pushedMs: 10_000, blockTimeMs: 200 }, 15_000],
];

for (const [name, more, dueMs] of CASES) {
  test(`the next poll is due ${name}`, () => {
    assert.equal(nextPollMs(schedule(more), NOW_MS), dueMs);
  });
}
