import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type BlockRing, createBlockRing, RING_BLOCKS, RING_HEADERS } from "../../src/heads/blockRing.ts";
import type { SealedBlock } from "../../src/nodes/blockReads.ts";

let count = 0;
const bloomOf = (seed: number): Uint8Array => new Uint8Array(256).fill(seed % 251);
const block = (number: number): SealedBlock => {
  count += 1;
  const hash = `0x${count.toString(16).padStart(64, "0")}` as const;
  return {
    block: { number: BigInt(number), hash, parentHash: hash, timestamp: 0n, logsBloom: bloomOf(count) },
    header: { hash },
  };
};
const blocks = (from: number, to: number): SealedBlock[] =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => block(from + index));

/** Compares a ring with the same blocks in a list. */
const check = (ring: BlockRing, model: readonly SealedBlock[]): void => {
  const newest = model.length === 0 ? 0n : (model.at(-1)?.block.number ?? 0n);
  assert.equal(ring.length, model.length);
  assert.equal(ring.latest, model.at(-1)?.block);
  assert.equal(ring.oldest, model[0]?.block.number);
  for (const { block, header } of model) {
    // Old blocks are copies.
    const found = ring.at(block.number);
    assert.ok(found?.hash === block.hash && found.parentHash === block.parentHash, `${block.number}`);
    assert.ok(Buffer.from(found.logsBloom).equals(block.logsBloom), `${block.number}`);
    assert.equal(ring.header(block.number), newest - block.number < RING_HEADERS ? header : undefined);
  }
  assert.equal(ring.at(newest + 1n), undefined);
  assert.equal(ring.at(ring.oldest - 1n), undefined);
};

const withoutOld = (entry: SealedBlock, newest: number): SealedBlock =>
  newest - Number(entry.block.number) < RING_HEADERS ? entry : { ...entry, header: undefined };

test("a ring has the blocks of a list after appends, reorganisations and backfills", () => {
  const step = fc.record({
    kind: fc.constantFrom("append", "reorg", "fill"),
    a: fc.nat(300),
    b: fc.integer({ min: 1, max: 300 }),
  });
  fc.assert(
    fc.property(fc.integer({ min: 500, max: 2_000 }), fc.array(step, { maxLength: 12 }), (start, steps) => {
      let model = [block(start)];
      let ring = createBlockRing(model);
      for (const { kind, a, b } of steps) {
        const oldest = Number(ring.oldest);
        const newest = Number(ring.latest.number);
        if (kind === "fill") {
          const below = blocks(Math.max(0, oldest - b), oldest - 1).map((entry) => withoutOld(entry, newest));
          model = [...below, ...model];
          ring = ring.withBottom(below);
        } else {
          const depth = kind === "reorg" ? Math.min(a, ring.length - 1) : 0;
          const top = blocks(newest - depth + 1, newest - depth + b);
          const before = model;
          const previous = ring;
          // A header is discarded once its block is not among the newest 256.
          const remaining = model.slice(0, model.length - depth).map((entry) => withoutOld(entry, newest));
          model = [...remaining, ...top].map((entry) => withoutOld(entry, newest - depth + b));
          ring = ring.withTop(top);
          check(previous, before);
        }
        check(ring, model);
      }
    }),
    { numRuns: 50 },
  );
});

test("a ring has up to 8,192 blocks", () => {
  let ring = createBlockRing(blocks(100, 100 + RING_BLOCKS - 2));
  ring = ring.withBottom(blocks(90, 99));
  assert.deepEqual([ring.length, ring.oldest], [RING_BLOCKS, 99n]);
  ring = ring.withTop(blocks(Number(ring.latest.number) + 1, Number(ring.latest.number) + 1_000));
  assert.deepEqual([ring.length, ring.oldest], [RING_BLOCKS, 1_099n]);
  assert.equal(createBlockRing(blocks(0, 10_000)).length, RING_BLOCKS);
});
