import assert from "node:assert/strict";
import { test } from "node:test";
import { BlockValues } from "../../src/state/blockValues.ts";
import type { WriteSet } from "../../src/state/writeSet.ts";
import { createRandom } from "../support/builders/randomValues.ts";
import { type ModelActions, ModelRun, realActions } from "./modelRun.ts";

const SEEDS = 12;
const BLOCKS = 400;
const LARGE_BYTES = 4 * 1024 * 1024;
/** Room for some 600 entries, less than the blocks write. */
const SMALL_BYTES = 100_000;

const runSeeds = (bytes: number, actions: ModelActions = realActions): { readonly share: number } => {
  let hits = 0;
  let reads = 0;
  for (let seed = 0; seed < SEEDS; seed++) {
    const run = new ModelRun(createRandom(seed), new BlockValues(bytes), actions);
    run.run(BLOCKS);
    hits += run.hits;
    reads += run.reads;
  }
  return { share: hits / reads };
};

test("values of random blocks, reorganisations and late fetches are those of a simple model", () => {
  const { share } = runSeeds(LARGE_BYTES);
  assert.ok(share > 0.7, `${share} of the reads are hits`);
});

test("values are right while entries are evicted", () => {
  const { share } = runSeeds(SMALL_BYTES);
  assert.ok(share > 0.2, `${share} of the reads are hits`);
});

const assertFound = (what: string, actions: Partial<ModelActions>): void => {
  test(`the model finds ${what}`, () => {
    assert.throws(() => runSeeds(LARGE_BYTES, { ...realActions, ...actions }), assert.AssertionError);
  });
};

assertFound("a reorganisation that is undone one block short", {
  *undo(values, to) {
    for (const number of values.undoTo(to)) {
      if (number === Number(to) + 1) {
        return;
      }
      yield;
    }
  },
});

assertFound("a value fetched at a block that enters after the next block wrote it", {
  enter: (values, key, block, value) => values.enter(key, values.head ?? block, value),
});

const without = (writeSet: WriteSet, part: "slots" | "otherSlots" | "balance"): WriteSet => ({
  ...writeSet,
  accounts: new Map(
    [...writeSet.accounts].map(([address, { [part]: _, ...rest }]) => [address, { slots: new Map(), ...rest }]),
  ),
});

for (const [what, part] of [
  ["lost slots", "slots"],
  ["slots that stay after a destruction", "otherSlots"],
  ["a lost balance", "balance"],
] as const) {
  assertFound(what, {
    apply: (values, writeSet) => values.apply(writeSet.block.number % 50n === 0n ? without(writeSet, part) : writeSet),
  });
}
