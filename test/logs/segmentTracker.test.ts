import assert from "node:assert/strict";
import { test } from "node:test";
import { splitIntoSegments } from "../../src/logs/plan.ts";
import { scanLogs } from "../../src/logs/scanLogs.ts";
import { createSegmentTracker } from "../../src/logs/segmentTracker.ts";
import { createHeads } from "../support/builders/heads.ts";
import { createMemoryStore } from "./memoryStore.ts";

const HEADS = createHeads({ latest: 600n, finalized: 383n });
const LIMITS = { memoryBlocks: 10_000, rangeBlocks: 256 };
const HASH = `0x${"ab".repeat(32)}`;

const createResponse = (...blocks: readonly number[]) => ({
  logs: scanLogs(
    Buffer.from(
      JSON.stringify(
        blocks.map((block) => ({ blockNumber: `0x${block.toString(16)}`, blockHash: HASH, logIndex: "0x0" })),
      ),
    ),
  ),
  timestamps: new Map<string, string>(),
  verified: true,
  nodes: new Set<string>(),
});

/** Tracks blocks 0 to 511: four segments, of which the first three are final. */
const track = (store = createMemoryStore()) => ({
  store,
  tracker: createSegmentTracker(splitIntoSegments({ from: 0n, to: 511n }, 383n), "filter", HEADS, store),
});

const states = ({ tracker }: ReturnType<typeof track>) =>
  [0, 1, 2, 3].map((index) => tracker.stateAt(index)?.kind).join(" ");

test("a fetch range covers adjacent missing segments of one retention class, and each segment gets its own logs", () => {
  const tracked = track();
  const { tracker, store } = tracked;
  const claimed = tracker.claimRange(0, LIMITS);
  assert.deepEqual([claimed?.from, claimed?.to, claimed?.final], [0n, 255n, true]);
  assert.equal(states(tracked), "fetching fetching missing missing");
  assert.equal(tracker.nextMissing(0), 2);
  assert.equal(tracker.claimRange(2, LIMITS)?.to, 383n, "recent segments are fetched separately");
  assert.equal(tracker.firstRecent(), 3);
  claimed?.complete(createResponse(5, 130, 131));
  assert.equal(states(tracked), "buffered buffered fetching missing");
  assert.deepEqual(
    [...store.entries.values()].map(({ bytes }) => scanLogs(bytes).map(({ block }) => block)),
    [[5], [130, 131]],
  );
  assert.ok(tracker.isStored);
});

test("buffered bytes are counted until they are sent or evicted, and an evicted segment is read again", async () => {
  const tracked = track();
  const { tracker } = tracked;
  tracker.claimRange(0, LIMITS)?.complete(createResponse(5, 130, 131));
  const bytes = tracker.bufferedBytes;
  tracker.evictBefore(0);
  assert.equal(states(tracked), "buffered stored missing missing");
  assert.ok(tracker.bufferedBytes > 0 && tracker.bufferedBytes < bytes);
  await tracker.lookUpAgain(1);
  assert.equal(tracker.bufferedBytes, bytes);
  for (const index of [0, 1]) {
    tracker.markSent(index);
  }
  assert.equal(states(tracked), "sent sent missing missing");
  assert.equal(tracker.bufferedBytes, 0);
});

test("segments of the store are found, and those of a failed fetch range are missing again", async () => {
  const { store, tracker: first } = track();
  first.claimRange(0, LIMITS)?.complete(createResponse(5));
  const tracked = track(store);
  await tracked.tracker.lookUp();
  assert.equal(states(tracked), "buffered buffered missing missing");
  assert.equal(tracked.tracker.firstLookup.segments, 2);
  assert.deepEqual([...tracked.tracker.firstLookup.from], ["memory"]);
  const claimed = tracked.tracker.claimRange(2, LIMITS);
  assert.equal(states(tracked), "buffered buffered fetching missing");
  claimed?.discard();
  assert.equal(states(tracked), "buffered buffered missing missing");
});

test("a segment larger than memory is fetched in parts, which are not stored", () => {
  const { store, tracker } = track();
  const claimed = tracker.claimRange(0, { ...LIMITS, memoryBlocks: 64 });
  assert.deepEqual([claimed?.from, claimed?.to], [0n, 63n]);
  claimed?.complete(createResponse(5));
  assert.equal(store.entries.size, 0);
  assert.ok(!tracker.isStored);
});
