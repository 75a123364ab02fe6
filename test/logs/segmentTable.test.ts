import assert from "node:assert/strict";
import { test } from "node:test";
import { CachedSegments } from "../../src/logs/cachedSegments.ts";
import { splitIntoSegments } from "../../src/logs/plan.ts";
import { scanLogs } from "../../src/logs/scanLogs.ts";
import { SegmentTable } from "../../src/logs/segmentTable.ts";
import { createHeads } from "../support/builders/heads.ts";
import { createContext } from "../support/builders/request.ts";
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

/** The table of blocks 0 to 511: four segments, of which the first three are final. */
const create = (store = createMemoryStore()) => ({
  store,
  table: new SegmentTable(
    splitIntoSegments({ from: 0n, to: 511n }, 383n),
    new CachedSegments("filter", createContext({ heads: HEADS }), store),
  ),
});

const states = ({ table }: ReturnType<typeof create>) =>
  [0, 1, 2, 3].map((index) => table.stateAt(index)?.kind).join(" ");

test("a fetch range covers adjacent missing segments, final or not, and each segment gets its own logs", () => {
  const created = create();
  const { table, store } = created;
  const claimed = table.claimRange(0, MAX_BLOCKS, "ascending");
  assert.deepEqual([claimed?.from, claimed?.to, claimed?.final], [0n, 255n, true]);
  assert.equal(states(created), "fetching fetching missing missing");
  assert.equal(table.nextMissing(0), 2);
  assert.equal(table.firstRecent(), 3);
  const next = table.claimRange(2, MAX_BLOCKS, "ascending");
  assert.deepEqual([next?.from, next?.to, next?.final], [256n, 511n, false]);
  claimed?.complete(createResponse(5, 130, 131));
  assert.equal(states(created), "buffered buffered fetching fetching");
  assert.deepEqual(
    [...store.entries.values()].map(({ bytes }) => scanLogs(bytes).map(({ block }) => block)),
    [[5], [130, 131]],
  );
  assert.ok(table.isStored);
});

test("a descending claim takes the last blocks of the missing run, and cuts a segment only if that saves a request", () => {
  const claims = (maxBlocks: number) => {
    const { table } = create();
    const first = table.claimRange(table.firstRecent(), maxBlocks, "descending");
    const second = table.claimRange(table.nextMissing(0), maxBlocks, "ascending");
    return [first?.from, first?.to, second?.from, second?.to].map(Number);
  };
  assert.deepEqual(claims(400), [128, 511, 0, 127], "two requests, with or without a cut");
  assert.deepEqual(claims(256), [256, 511, 0, 255]);
  assert.deepEqual(claims(171), [341, 511, 0, 170], "aligned ranges would need four requests");
});

test("a cut segment is not cached if one of its parts is not verified", () => {
  const { table, store } = create();
  table.claimRange(0, 171, "ascending")?.complete({ ...createResponse(5, 130), verified: false });
  table.claimRange(2, 171, "ascending")?.complete(createResponse(172));
  assert.deepEqual([...store.entries.keys()], []);
  assert.ok(!table.isStored);
});

test("a part of a cached segment is evicted and read again alone", async () => {
  const { table } = create();
  table.claimRange(0, 171, "ascending")?.complete(createResponse(5, 130));
  table.claimRange(2, 171, "ascending")?.complete(createResponse(172, 250));
  table.evictAfterNext();
  table.markSent();
  table.markSent();
  assert.equal(table.stateAt(2)?.kind, "stored");
  await table.lookUpNext();
  const state = table.stateAt(2);
  assert.deepEqual(state?.kind === "buffered" && scanLogs(state.bytes).map(({ block }) => block), [172, 250]);
});

test("buffered bytes are counted until they are sent or evicted, and an evicted segment is read again", async () => {
  const created = create();
  const { table } = created;
  table.claimRange(0, MAX_BLOCKS, "ascending")?.complete(createResponse(5, 130, 131));
  const bytes = table.bufferedBytes;
  table.evictAfterNext();
  assert.equal(states(created), "buffered stored missing missing");
  assert.ok(table.bufferedBytes > 0 && table.bufferedBytes < bytes);
  await table.lookUpNext();
  assert.equal(table.bufferedBytes, bytes);
  table.markSent();
  table.markSent();
  assert.equal(states(created), "sent sent missing missing");
  assert.equal(table.bufferedBytes, 0);
});

test("a segment larger than memory is fetched in parts, which are not cached", () => {
  const { store, table } = create();
  table.claimRange(0, 64, "ascending")?.complete(createDenseResponse(1_500_000, 5));
  table.claimRange(1, 64, "ascending")?.complete(createDenseResponse(1_500_000, 100));
  assert.equal(store.entries.size, 0);
  assert.ok(!table.isStored);
});
