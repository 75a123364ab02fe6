import assert from "node:assert/strict";
import { test } from "node:test";
import { sealBlocks } from "../../src/pending/executedBlocks.ts";
import { hashOf } from "../support/builders/flashblocks.ts";
import { createFakeHeads } from "../support/fakes/fakeHeads.ts";

test("the first head looks up no old block: the ring would be filled down to it", () => {
  const heads = { ...createFakeHeads(100n).current(), at: () => assert.fail("a block is looked up") };
  const base = { base: { number: 0n, hash: hashOf(0) }, extraBlockFields: {}, blocks: [] };
  const pipeline = { record: () => undefined };
  assert.deepEqual(sealBlocks(base, heads, [], { pipeline, skipsReceiptsRoot: false }), []);
});
