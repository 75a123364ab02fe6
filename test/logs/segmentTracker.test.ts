import assert from "node:assert/strict";
import { test } from "node:test";
import { splitIntoSegments } from "../../src/logs/plan.ts";
import { scanLogs } from "../../src/logs/scanLogs.ts";
import { createSegmentTracker } from "../../src/logs/segmentTracker.ts";
import { createHeads } from "../support/builders/heads.ts";
import { createMemoryStore } from "./memoryStore.ts";

const HEADS = createHeads({ latest: 600n, finalized: 383n });
const MAX_BLOCKS = 256;
const HASH = `0x${"ab".repeat(32)}`;

const createDenseResponse = (dataBytes: number, ...blocks: readonly number[]) => ({
  logs: scanLogs(
    Buffer.from(
      JSON.stringify(
        blocks.map((block) => ({
          blockNumber: `0x${block.toString(16)}`,
          blockHash: HASH,
          logIndex: "0x0",
          data: `0x${"00".repeat(dataBytes)}`,
        })),
      ),
    ),
  ),
  timestamps: new Map<string, string>(),
  verified: true,
  nodes: new Set<string>(),
});

const createResponse = (...blocks: readonly number[]) => createDenseResponse(0, ...blocks);

/** Tracks blocks 0 to 511: four segments, of which the first three are final. */
const track = (store = createMemoryStore()) => ({
  store,
  tracker: createSegmentTracker(splitIntoSegments({ from: 0n, to: 511n }, 383n), "filter", HEADS, store),
});

const states = ({ tracker }: ReturnType<typeof track>) =>
  [0, 1, 2, 3].map((index) => tracker.stateAt(index)?.kind).join(" ");

test("a fetch range covers adjacent missing segments, final or not, and each segment gets its own logs", () => {
  const tracked = track();
  const { tracker, store } = tracked;
  const claimed = tracker.claimRange(0, MAX_BLOCKS, "ascending");
  assert.deepEqual([claimed?.from, claimed?.to, claimed?.final], [0n, 255n, true]);
  assert.equal(states(tracked), "fetching fetching missing missing");
  assert.equal(tracker.nextMissing(0), 2);
  assert.equal(tracker.firstRecent(), 3);
  const next = tracker.claimRange(2, MAX_BLOCKS, "ascending");
  assert.deepEqual([next?.from, next?.to, next?.final], [256n, 511n, false]);
  claimed?.complete(createResponse(5, 130, 131));
  assert.equal(states(tracked), "buffered buffered fetching fetching");
  assert.deepEqual(
    [...store.entries.values()].map(({ bytes }) => scanLogs(bytes).map(({ block }) => block)),
    [[5], [130, 131]],
  );
  assert.ok(tracker.isStored);
});

test("a descending claim takes the last blocks of the missing run, and cuts a segment only if that saves a request", () => {
  const claims = (maxBlocks: number) => {
    const { tracker } = track();
    const first = tracker.claimRange(tracker.firstRecent(), maxBlocks, "descending");
    const second = tracker.claimRange(tracker.nextMissing(0), maxBlocks, "ascending");
    return [first?.from, first?.to, second?.from, second?.to].map(Number);
  };
  assert.deepEqual(claims(400), [128, 511, 0, 127], "two requests, with or without a cut");
  assert.deepEqual(claims(256), [256, 511, 0, 255]);
  assert.deepEqual(claims(171), [341, 511, 0, 170], "aligned ranges would need four requests");
});

test("a segment that two fetch ranges cut is sent in parts, and cached once both are there", () => {
  const { tracker, store } = track();
  const first = tracker.claimRange(0, 171, "ascending");
  const second = tracker.claimRange(tracker.nextMissing(0), 171, "ascending");
  assert.deepEqual([first?.to, second?.from], [170n, 171n]);
  second?.complete(createResponse(172, 300));
  assert.equal(store.entries.size, 0, "no segment is complete");
  first?.complete(createResponse(5, 130, 170));
  assert.deepEqual(
    [...store.entries].map(([key, { bytes }]) => [key, scanLogs(bytes).map(({ block }) => block)]),
    [
      ["logs:filter:0-127", [5]],
      ["logs:filter:128-255", [130, 170, 172]],
    ],
  );
  const sent = [0, 1, 2, 3].map((index) => {
    const state = tracker.stateAt(index);
    tracker.markSent(index);
    return state?.kind === "buffered" ? scanLogs(state.bytes).map(({ block }) => block) : [];
  });
  assert.deepEqual(sent, [[5], [130, 170], [172], [300]]);
});

test("a cut segment is not cached if one of its parts is not verified", () => {
  const { tracker, store } = track();
  tracker.claimRange(0, 171, "ascending")?.complete({ ...createResponse(5, 130), verified: false });
  tracker.claimRange(2, 171, "ascending")?.complete(createResponse(172));
  assert.deepEqual([...store.entries.keys()], []);
  assert.ok(!tracker.isStored);
});

test("a part of a cached segment is evicted and read again alone", async () => {
  const { tracker } = track();
  tracker.claimRange(0, 171, "ascending")?.complete(createResponse(5, 130));
  tracker.claimRange(2, 171, "ascending")?.complete(createResponse(172, 250));
  tracker.evictBefore(0);
  assert.equal(tracker.stateAt(2)?.kind, "stored");
  await tracker.lookUpAgain(2);
  const state = tracker.stateAt(2);
  assert.deepEqual(state?.kind === "buffered" && scanLogs(state.bytes).map(({ block }) => block), [172, 250]);
});

test("buffered bytes are counted until they are sent or evicted, and an evicted segment is read again", async () => {
  const tracked = track();
  const { tracker } = tracked;
  tracker.claimRange(0, MAX_BLOCKS, "ascending")?.complete(createResponse(5, 130, 131));
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
  first.claimRange(0, MAX_BLOCKS, "ascending")?.complete(createResponse(5));
  const tracked = track(store);
  await tracked.tracker.lookUp();
  assert.equal(states(tracked), "buffered buffered missing missing");
  assert.equal(tracked.tracker.firstLookup.segments, 2);
  assert.deepEqual([...tracked.tracker.firstLookup.from], ["memory"]);
  const claimed = tracked.tracker.claimRange(2, 128, "ascending");
  assert.equal(states(tracked), "buffered buffered fetching missing");
  claimed?.discard();
  assert.equal(states(tracked), "buffered buffered missing missing");
});

test("a segment larger than memory is fetched in parts, which are not cached", () => {
  const { store, tracker } = track();
  tracker.claimRange(0, 64, "ascending")?.complete(createDenseResponse(1_500_000, 5));
  tracker.claimRange(1, 64, "ascending")?.complete(createDenseResponse(1_500_000, 100));
  assert.equal(store.entries.size, 0);
  assert.ok(!tracker.isStored);
});
