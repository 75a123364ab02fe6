import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTick } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { StateKey } from "../../src/state/stateKey.ts";
import { packWrites } from "../../src/state/store/packedWrites.ts";
import type { BlockWrites } from "../../src/state/writeSet.ts";
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
  const codes = Array.from({ length: 100 }, (_, index) => {
    const address = addressOf(index);
    return { address, field: "code" as const, slot: undefined };
  });
  for (const [index, key] of codes.entries()) {
    follower.add({ key, value: Buffer.alloc(24_576, String(index)), node: undefined }, next, follower.generation);
  }
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
  assert.ok(codes.every((key) => values.get(key, next) !== undefined));
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
  assert.deepEqual(dropped, ["pause"]);
  assert.equal(values.get(BALANCE, block(FIRST + 6n)), undefined);
});

test("values that were asked before all values were dropped do not enter", () => {
  const { values, follower, dropped } = createRig();
  const before = follower.generation;
  follower.forget();
  follower.add({ key: BALANCE, value: ONE, node: undefined }, block(FIRST), before);
  assert.equal(values.get(BALANCE, block(FIRST)), undefined);
  follower.add({ key: BALANCE, value: ONE, node: undefined }, block(FIRST), follower.generation);
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
  assert.deepEqual(differences, [
    { key: BALANCE, block: block(FIRST), known: ONE, actual: TWO, isActualProven: false, node: "two" },
  ]);
  assert.equal(values.get(BALANCE, block(FIRST)), ONE);
  assert.deepEqual(dropped, []);
});

test("a contested value is not known, and is learned again once it is settled", () => {
  const { values, differences, enter } = createRig();
  enter(block(FIRST), ONE, "one");
  values.contest(BALANCE, block(FIRST), () => assert.fail("nothing is proven"));
  enter(block(FIRST), TWO, "two");
  assert.equal(values.get(BALANCE, block(FIRST)), undefined);
  values.settle(BALANCE);
  enter(block(FIRST), TWO, "two");
  assert.equal(values.get(BALANCE, block(FIRST)), TWO);
  assert.deepEqual(differences, []);
});

test("a contest that nothing ends holds no memory after ten minutes", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const clock = { ms: performance.now() };
  t.mock.method(performance, "now", () => clock.ms);
  const { values } = createRig();
  const contest = (): WeakRef<object> => {
    const judge = { proven: 0 };
    values.contest(BALANCE, block(FIRST), () => judge.proven++);
    return new WeakRef(judge);
  };
  const judge = contest();
  setFlagsFromString("--expose-gc");
  const collect = async (): Promise<boolean> => {
    await nextTick();
    runInNewContext("gc")();
    return judge.deref() === undefined;
  };
  assert.equal(await collect(), false);
  clock.ms += 600_001;
  t.mock.timers.tick(600_001);
  assert.equal(await collect(), true);
});

test("a contested value becomes known by a proof of its block or of a later one, which shows it if nothing wrote it", async () => {
  const { source, heads, values, follower, differences, enter } = createRig();
  const [first, second, third] = [block(FIRST), block(FIRST + 1n), block(FIRST + 2n)];
  /** Publishes a block whose write set a header proves. */
  const extend = async (at: typeof first, writes: BlockWrites = new Map()): Promise<void> => {
    source.answer(at, { block: at, packed: packWrites(writes), isProven: true });
    heads.move(at);
    await follower.untilApplied(at);
  };
  const shown: (string | undefined)[] = [];
  const contest = (at: typeof first) => values.contest(BALANCE, at, (value) => shown.push(value));
  const prove = (at: typeof first, value: string) =>
    follower.add({ key: BALANCE, value, node: undefined, isProven: true }, at, follower.generation);
  enter(first, TWO, "liar");
  contest(first);
  prove(first, ONE);
  assert.deepEqual([shown, values.get(BALANCE, first)], [[ONE], ONE], "of the same block");
  contest(first);
  await extend(second);
  prove(second, ONE);
  assert.deepEqual([shown, values.get(BALANCE, second)], [[ONE, ONE], ONE], "carried by proven write sets");
  contest(second);
  prove(first, ONE);
  assert.equal(values.get(BALANCE, second), undefined, "a proof of an earlier block ends no contest");
  await extend(third, new Map([[BALANCE.address, { balance: 2n, slots: new Map() }]]));
  prove(third, "2".padStart(64, "0"));
  assert.deepEqual(shown, [ONE, ONE, undefined], "the value was written since");
  assert.deepEqual(differences, []);
});

test("values of a node are forgotten in all blocks, and those of other nodes stay", async () => {
  const { values, follower, dropped, enter, extend } = createRig();
  const other: StateKey = { ...BALANCE, field: "nonce" };
  enter(block(FIRST), ONE, "liar");
  follower.add({ key: other, value: TWO, node: "honest" }, block(FIRST), follower.generation);
  await extend(block(FIRST + 1n));
  const before = follower.generation;
  follower.forgetNode("liar");
  for (const at of [block(FIRST), block(FIRST + 1n)]) {
    assert.equal(values.get(BALANCE, at), undefined);
    assert.equal(values.get(other, at), TWO);
  }
  follower.add({ key: BALANCE, value: ONE, node: "liar" }, block(FIRST + 1n), before);
  assert.equal(values.get(BALANCE, block(FIRST + 1n)), undefined, "it was asked before");
  enter(block(FIRST + 1n), TWO, "honest");
  assert.equal(values.get(BALANCE, block(FIRST + 1n)), TWO);
  assert.deepEqual(dropped, []);
});

test("values of a node that wait for a write set are forgotten", async () => {
  const { heads, source, values, follower, enter } = createRig();
  const next = block(FIRST + 1n);
  heads.move(next);
  enter(next, ONE, "liar");
  follower.forgetNode("liar");
  source.answer(next, emptyWriteSet(next));
  await follower.untilApplied(next);
  assert.equal(values.get(BALANCE, next), undefined);
});

test("values that traces of a forgotten node carried are all dropped", async () => {
  const { heads, source, values, follower, dropped, enter } = createRig();
  enter(block(FIRST), ONE, "honest");
  const next = block(FIRST + 1n);
  heads.move(next);
  source.answer(next, { ...emptyWriteSet(next), node: "liar" });
  await follower.untilApplied(next);
  assert.deepEqual(values.givers.carriersOf(FIRST, FIRST + 1n), ["liar"]);
  follower.forgetNode("liar");
  assert.deepEqual(dropped, ["difference"]);
  assert.equal(values.get(BALANCE, next), undefined);
  assert.deepEqual(values.givers.carriersOf(FIRST, FIRST + 1n), []);
});
