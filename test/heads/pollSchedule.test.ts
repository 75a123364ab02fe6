import assert from "node:assert/strict";
import { test } from "node:test";
import { nextPollMs, type PollSchedule } from "../../src/heads/pollSchedule.ts";

/** A block of 2 s was seen at 10,000 by the last poll; somebody asked just now. */
const schedule = (more: Partial<PollSchedule> = {}): PollSchedule => ({
  blockTimeMs: 2_000,
  lastRequestMs: 10_000,
  polledMs: 10_000,
  newHeadMs: 10_000,
  foundByFirstPoll: false,
  pushedMs: undefined,
  native: false,
  failing: false,
  ...more,
});

const NOW_MS = 10_100;
const CASES: readonly [string, Partial<PollSchedule>, number][] = [
  ["when the next block is due", {}, 12_000],
  ["then every quarter of a block time", { polledMs: 12_000 }, 12_500],
  ["at least 250 ms apart", { polledMs: 12_000, blockTimeMs: 200 }, 12_250],
  ["less than 1 s apart", { polledMs: 30_000, blockTimeMs: 12_000 }, 30_900],
  ["half a step earlier when the block was there at once", { foundByFirstPoll: true }, 11_750],
  ["idle: once a block time", { lastRequestMs: -20_000 }, 12_000],
  ["idle on a slow chain", { lastRequestMs: -20_000, blockTimeMs: 12_000 }, 22_000],
  ["native: once a block", { native: true, polledMs: 12_000, blockTimeMs: 200 }, 12_200],
  ["pushed heads: only after a silence of three blocks", { pushedMs: 10_000 }, 16_000],
  ["pushed heads of a fast chain: only after 5 s", { pushedMs: 10_000, blockTimeMs: 200 }, 15_000],
  ["a node that fails: once a second", { failing: true, polledMs: 12_000 }, 13_000],
];

for (const [name, more, dueMs] of CASES) {
  test(`a node is asked for its head ${name}`, () => {
    assert.equal(nextPollMs(schedule(more), NOW_MS), dueMs);
  });
}
