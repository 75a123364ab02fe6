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

const answer = (...blocks: readonly number[]) => ({
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

/** Blocks 0 to 511: four segments, the first three of them final. */
const track = (store = createMemoryStore()) => ({
  store,
  pieces: createSegmentTracker(splitIntoSegments({ from: 0n, to: 511n }, 383n), "filter", HEADS, store),
});

const states = ({ pieces }: ReturnType<typeof track>) =>
  [0, 1, 2, 3].map((index) => pieces.stateAt(index)?.kind).join(" ");

test("a span is of missing pieces side by side, all final or none, and gives each its own logs", () => {
  const tracked = track();
  const { pieces, store } = tracked;
  const span = pieces.claimRange(0, LIMITS);
  assert.deepEqual([span?.from, span?.to, span?.final], [0n, 255n, true]);
  assert.equal(states(tracked), "fetching fetching missing missing");
  assert.equal(pieces.nextMissing(0), 2);
  assert.equal(pieces.claimRange(2, LIMITS)?.to, 383n, "what is not final is asked for apart");
  assert.equal(pieces.firstRecent(), 3);
  span?.complete(answer(5, 130, 131));
  assert.equal(states(tracked), "buffered buffered fetching missing");
  assert.deepEqual(
    [...store.entries.values()].map(({ bytes }) => scanLogs(bytes).map(({ block }) => block)),
    [[5], [130, 131]],
  );
  assert.ok(pieces.isStored);
});

test("what is held is counted until it is sent or let go; what was let go is looked up again", async () => {
  const tracked = track();
  const { pieces } = tracked;
  pieces.claimRange(0, LIMITS)?.complete(answer(5, 130, 131));
  const bytes = pieces.bufferedBytes;
  pieces.evictBefore(0);
  assert.equal(states(tracked), "buffered stored missing missing");
  assert.ok(pieces.bufferedBytes > 0 && pieces.bufferedBytes < bytes);
  await pieces.lookUpAgain(1);
  assert.equal(pieces.bufferedBytes, bytes);
  for (const index of [0, 1]) {
    pieces.markSent(index);
  }
  assert.equal(states(tracked), "sent sent missing missing");
  assert.equal(pieces.bufferedBytes, 0);
});

test("pieces that are in the store are found, and a lost span's are missing again", async () => {
  const { store, pieces: first } = track();
  first.claimRange(0, LIMITS)?.complete(answer(5));
  const tracked = track(store);
  await tracked.pieces.lookUp();
  assert.equal(states(tracked), "buffered buffered missing missing");
  assert.equal(tracked.pieces.firstLookup.segments, 2);
  assert.deepEqual([...tracked.pieces.firstLookup.from], ["memory"]);
  const span = tracked.pieces.claimRange(2, LIMITS);
  assert.equal(states(tracked), "buffered buffered fetching missing");
  span?.discard();
  assert.equal(states(tracked), "buffered buffered missing missing");
});

test("a segment that is larger than memory goes in parts, which are not kept", () => {
  const { store, pieces } = track();
  const span = pieces.claimRange(0, { ...LIMITS, memoryBlocks: 64 });
  assert.deepEqual([span?.from, span?.to], [0n, 63n]);
  span?.complete(answer(5));
  assert.equal(store.entries.size, 0);
  assert.ok(!pieces.isStored);
});
