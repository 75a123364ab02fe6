import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTick } from "node:timers/promises";
import type { StateKey } from "../../src/state/stateKey.ts";
import { addressOf } from "../support/builders/stateModel.ts";
import { emptyWriteSet } from "./fakeWriteSets.ts";
import { BALANCE, block, createRig, FIRST, ONE } from "./followerRig.ts";

test("a value that no block writes stays known, and each block is read once", async () => {
  const { source, values, enter, extend, dropped, outcomes } = createRig();
  enter(block(FIRST));
  await extend(block(FIRST + 1n));
  await extend(block(FIRST + 2n), block(FIRST + 3n));
  assert.equal(values.get(BALANCE, block(FIRST + 3n)), ONE);
  assert.equal(values.get(BALANCE, block(FIRST)), ONE);
  assert.equal(source.reads, 3);
  assert.deepEqual(outcomes, ["read", "read", "read"]);
  assert.deepEqual(dropped, []);
});

test("write sets that come out of order are applied in order", async () => {
  const { heads, source, values, follower, enter } = createRig();
  enter(block(FIRST));
  const [first, second] = [block(FIRST + 1n), block(FIRST + 2n)];
  heads.move(first, second);
  const applied = follower.untilApplied(second);
  source.answer(second, emptyWriteSet(second));
  await nextTick();
  assert.equal(values.get(BALANCE, second), undefined);
  source.answer(first, emptyWriteSet(first));
  await applied;
  assert.equal(values.get(BALANCE, second), ONE);
});

test("what was known ends at a block without a write set", async () => {
  const { heads, source, values, follower, dropped, enter, extend } = createRig();
  enter(block(FIRST));
  const failed = block(FIRST + 1n);
  heads.move(failed);
  const settled = follower.untilApplied(failed);
  enter(failed, "2".padStart(64, "0"));
  source.answer(failed, "late");
  await settled;
  assert.deepEqual(dropped, ["noWriteSet"]);
  assert.equal(values.get(BALANCE, block(FIRST)), undefined);
  // The value was fetched at the block itself.
  assert.equal(values.get(BALANCE, failed), "2".padStart(64, "0"));
  await extend(block(FIRST + 2n));
  assert.equal(values.get(BALANCE, block(FIRST + 2n)), "2".padStart(64, "0"));
});

test("values that wait for a write set enter in slices, and all of them before its reads go on", async () => {
  const { heads, source, values, follower } = createRig();
  const next = block(FIRST + 1n);
  heads.move(next);
  const settled = follower.untilApplied(next);
  const keys = Array.from({ length: 4_000 }, (_, index) => ({ ...BALANCE, address: addressOf(index) }));
  follower.beginRead()({ values: keys.map((key) => [key, ONE] as const) }, next);
  source.answer(next, emptyWriteSet(next));
  let isSettled = false;
  void settled?.then(() => {
    isSettled = true;
  });
  let turns = 0;
  while (!isSettled) {
    await nextTick();
    turns++;
  }
  assert.ok(turns > 4, `${turns} turns`);
  assert.ok(keys.every((key) => values.get(key, next) !== undefined));
});

test("a reorganisation drops what was fetched at its blocks, and cancels their reads", async () => {
  const { heads, source, values, enter, extend, dropped } = createRig();
  const nonce: StateKey = { ...BALANCE, field: "nonce" };
  enter(block(FIRST));
  await extend(block(FIRST + 1n), block(FIRST + 2n));
  values.add(nonce, block(FIRST + 2n), ONE);
  heads.move(block(FIRST + 3n));
  await nextTick();
  const [read] = source.pending;
  await extend(block(FIRST + 2n, 1), block(FIRST + 3n, 1));
  assert.equal(read?.signal.aborted, true);
  assert.equal(values.get(BALANCE, block(FIRST + 3n, 1)), ONE);
  assert.equal(values.get(nonce, block(FIRST + 3n, 1)), undefined);
  assert.equal(values.get(BALANCE, block(FIRST + 2n)), undefined);
  assert.deepEqual(dropped, []);
});

test("a gap, another chain and new rules end what was known", async () => {
  const isFork = FIRST + 1n;
  const { heads, values, follower, dropped, enter } = createRig({
    hasSameRules: (_, { number }) => number !== isFork,
  });
  enter(block(FIRST));
  heads.move(block(isFork));
  await follower.untilApplied(block(isFork));
  assert.deepEqual(dropped, ["fork"]);
  assert.equal(values.get(BALANCE, block(isFork)), undefined);
  enter(block(isFork));
  assert.equal(values.get(BALANCE, block(isFork)), ONE);
  heads.move(block(FIRST + 200n, 2));
  assert.deepEqual(dropped, ["fork", "gap"]);
  assert.equal(values.get(BALANCE, block(isFork)), undefined);
});

test("a paid source is not read while the policy says that it does not pay", async () => {
  let pays = false;
  let catchesUp = false;
  const cost = {
    shouldFollow: (units: number) => pays && units === 20,
    shouldCatchUp: () => catchesUp,
  };
  const { heads, source, values, follower, dropped, enter, extend } = createRig({ cost });
  assert.equal(follower.isFollowing, false);
  pays = true;
  await extend(block(FIRST + 1n));
  enter(block(FIRST + 1n));
  await extend(block(FIRST + 2n));
  assert.equal(values.get(BALANCE, block(FIRST + 2n)), ONE);
  pays = false;
  heads.move(block(FIRST + 3n));
  assert.equal(follower.isFollowing, false);
  assert.equal(source.reads, 1);
  pays = true;
  catchesUp = true;
  // Block 3 was missed in the pause.
  source.answer(block(FIRST + 3n), emptyWriteSet(block(FIRST + 3n)));
  await extend(block(FIRST + 4n));
  assert.equal(values.get(BALANCE, block(FIRST + 4n)), ONE);
  pays = false;
  heads.move(block(FIRST + 5n));
  pays = true;
  catchesUp = false;
  heads.move(block(FIRST + 6n));
  assert.deepEqual(dropped, ["gap"]);
  assert.equal(values.get(BALANCE, block(FIRST + 6n)), undefined);
});

test("values that were asked before all values were dropped do not enter", () => {
  const { values, follower, dropped } = createRig();
  const enter = follower.beginRead();
  follower.forget();
  enter({ values: [[BALANCE, ONE]] }, block(FIRST));
  assert.equal(values.get(BALANCE, block(FIRST)), undefined);
  follower.beginRead()({ values: [[BALANCE, ONE]] }, block(FIRST));
  assert.equal(values.get(BALANCE, block(FIRST)), ONE);
  assert.deepEqual(dropped, ["nodeChanged"]);
});

const TWO = "2".padStart(64, "0");

test("a node's value that differs from the known one is reported with the node, and does not replace it", () => {
  const { values, differences, dropped, enter } = createRig();
  enter(block(FIRST), ONE, "one");
  enter(block(FIRST), ONE, "two");
  assert.deepEqual(differences, []);
  enter(block(FIRST), TWO, "two");
  assert.deepEqual(differences, [{ key: BALANCE, block: block(FIRST), known: ONE, actual: TWO, node: "two" }]);
  assert.equal(values.get(BALANCE, block(FIRST)), ONE);
  assert.deepEqual(dropped, []);
});
