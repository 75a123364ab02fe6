import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTick } from "node:timers/promises";
import type { RingBlock } from "../../src/core/heads.ts";
import { BlockValues } from "../../src/state/blockValues.ts";
import { everySource, type FollowPolicy, freeSourcesOnly } from "../../src/state/followPolicy.ts";
import { Probation } from "../../src/state/probation.ts";
import { StateFollower } from "../../src/state/stateFollower.ts";
import type { StateKey } from "../../src/state/stateKey.ts";
import type { DropReason } from "../../src/telemetry/stateMetrics.ts";
import { hashOf } from "../support/builders/heads.ts";
import { createRandom, pick } from "../support/builders/randomValues.ts";
import {
  addressOf,
  createModelBlock,
  firstModelBlock,
  MODEL_KEYS,
  type ModelBlock,
  modelValue,
} from "../support/builders/stateModel.ts";
import { createFakeHeads } from "../support/fakes/fakeHeads.ts";
import { emptyWriteSet, FakeWriteSets } from "../support/fakes/fakeWriteSets.ts";

const BYTES = 4 * 1024 * 1024;
const FIRST = 1_000n;
const BALANCE: StateKey = { address: addressOf(0), field: "balance", slot: undefined };
const ONE = "1".padStart(64, "0");

const block = (number: bigint, fork = 0) => ({ number, hash: hashOf(number, fork) });

interface RigOptions {
  readonly policy?: FollowPolicy;
  readonly hasSameRules?: (parent: RingBlock, child: RingBlock) => boolean;
}

const createRig = ({ policy = everySource, hasSameRules = () => true }: RigOptions = {}) => {
  const heads = createFakeHeads(FIRST);
  heads.move({ ...block(FIRST) });
  const source = new FakeWriteSets("trace", policy === everySource ? 0 : 20);
  const values = new BlockValues(BYTES);
  const dropped: DropReason[] = [];
  const outcomes: string[] = [];
  const follower = new StateFollower({
    heads,
    sources: [source],
    policy,
    values,
    hasSameRules,
    onRead: (_, outcome) => outcomes.push(outcome),
    onHead: () => undefined,
    onDifference: () => undefined,
    onApplied: () => undefined,
    onFault: () => undefined,
    onDropped: (reason) => dropped.push(reason),
  });
  const enter = (at: { number: bigint; hash: `0x${string}` }, value = ONE) =>
    follower.enter(BALANCE, at, value, follower.generation);
  /** Publishes blocks and answers their reads. */
  const extend = async (...blocks: readonly ReturnType<typeof block>[]) => {
    heads.move(...blocks);
    const applied = blocks.map((each) => follower.untilApplied(each));
    for (const each of blocks) {
      source.answer(each, emptyWriteSet(each));
    }
    await Promise.all(applied);
  };
  return { heads, source, values, follower, dropped, outcomes, enter, extend };
};

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

test("a reorganisation drops what was fetched at its blocks, and cancels their reads", async () => {
  const { heads, source, values, enter, extend, dropped } = createRig();
  const nonce: StateKey = { ...BALANCE, field: "nonce" };
  enter(block(FIRST));
  await extend(block(FIRST + 1n), block(FIRST + 2n));
  values.enter(nonce, block(FIRST + 2n), ONE);
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
  const policy: FollowPolicy = {
    ...freeSourcesOnly,
    shouldFollow: (units) => pays && units === 20,
    shouldCatchUp: () => catchesUp,
  };
  const { heads, source, values, follower, dropped, enter, extend } = createRig({ policy });
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
  follower.enter(BALANCE, block(FIRST), ONE, before);
  assert.equal(values.get(BALANCE, block(FIRST)), undefined);
  follower.enter(BALANCE, block(FIRST), ONE, follower.generation);
  assert.equal(values.get(BALANCE, block(FIRST)), ONE);
  assert.deepEqual(dropped, ["nodeChanged"]);
});

test("a node's value that differs from the known one drops all values", () => {
  const { values, dropped, enter } = createRig();
  enter(block(FIRST), ONE);
  enter(block(FIRST), ONE);
  assert.deepEqual(dropped, []);
  enter(block(FIRST), "2".padStart(64, "0"));
  assert.deepEqual(dropped, ["difference"]);
  assert.equal(values.get(BALANCE, block(FIRST)), undefined);
});

/** A feed, and a trace on probation that one agreement ends. */
const createMixedRig = () => {
  const heads = createFakeHeads(FIRST);
  heads.move({ ...block(FIRST) });
  const feed = new FakeWriteSets("feed");
  const trace = Object.assign(new FakeWriteSets("trace"), { probation: new Probation({ blocks: 1, values: 1 }) });
  const values = new BlockValues(BYTES);
  const dropped: DropReason[] = [];
  const follower = new StateFollower({
    ...{ heads, values, sources: [feed, trace], policy: everySource },
    hasSameRules: () => true,
    onRead: () => undefined,
    onHead: () => undefined,
    onDifference: () => undefined,
    onApplied: () => undefined,
    onFault: () => undefined,
    onDropped: (reason) => dropped.push(reason),
  });
  let number = FIRST;
  /** Publishes a block whose write set only this source has. */
  const extend = async (source: FakeWriteSets): Promise<void> => {
    number++;
    feed.answer(block(number), source === feed ? emptyWriteSet(block(number)) : "incomplete");
    trace.answer(block(number), source === trace ? emptyWriteSet(block(number)) : "late");
    heads.move(block(number));
    await follower.untilApplied(block(number));
  };
  const enter = () => follower.enter(BALANCE, block(number), ONE, follower.generation);
  const known = () => values.get(BALANCE, block(number));
  return { feed, trace, dropped, extend, enter, known };
};

test("values that a source on probation carried are known after they agreed", async () => {
  const { trace, dropped, extend, enter, known } = createMixedRig();
  enter();
  await extend(trace);
  assert.equal(known(), undefined);
  enter();
  assert.equal(known(), ONE);
  await extend(trace);
  assert.equal(known(), ONE);
  assert.deepEqual(dropped, []);
});

test("a source on probation is not asked while another one has the write sets", async () => {
  const { feed, trace, dropped, extend, enter, known } = createMixedRig();
  enter();
  await extend(feed);
  assert.equal(known(), ONE);
  for (let count = 0; count < 8; count++) {
    await extend(trace);
  }
  assert.equal(trace.reads, 0);
  assert.deepEqual(dropped, Array(8).fill("noWriteSet"));
  enter();
  await extend(trace);
  assert.equal(trace.reads, 1);
  assert.equal(known(), undefined);
});

test("values that a source on probation carried end when another source has a write set", async () => {
  const { feed, trace, dropped, extend, enter, known } = createMixedRig();
  enter();
  await extend(trace);
  await extend(feed);
  assert.deepEqual(dropped, ["probation"]);
  enter();
  assert.equal(known(), ONE);
  await extend(feed);
  assert.equal(known(), ONE);
});

const SEEDS = 6;
const STEPS = 400;

/** A chain of model blocks whose heads, write sets and fetched values arrive in a random order. */
const runRandomHeads = async (seed: number): Promise<number> => {
  const random = createRandom(seed);
  const { heads, source, values, follower } = createRig();
  let chain: ModelBlock[] = [firstModelBlock(FIRST)];
  const all = new Map<string, ModelBlock>(chain.map((each) => [each.hash, each]));
  const fetches: (() => void)[] = [];
  let fork = 0;
  let hits = 0;
  const mine = (): void => {
    if (random() < 0.2) {
      fork++;
      chain = chain.slice(0, Math.max(1, chain.length - Math.ceil(random() ** 3 * 20)));
    }
    const added: ModelBlock[] = [];
    for (let count = random() < 0.1 ? 3 : 1; count > 0; count--) {
      const parent = added.at(-1) ?? chain.at(-1);
      assert.ok(parent);
      added.push(createModelBlock(random, parent, fork));
    }
    for (const each of added) {
      all.set(each.hash, each);
    }
    chain.push(...added);
    heads.move(...added);
  };
  const answer = (): void => {
    const read = source.pending.length > 0 ? pick(random, source.pending) : undefined;
    const writeSet = read && all.get(read.block.hash)?.writeSet;
    if (read && writeSet) {
      source.answer(read.block, random() < 0.02 ? "error" : writeSet);
    }
  };
  const readOne = (): void => {
    const key = pick(
      random,
      MODEL_KEYS.filter(({ field }) => field !== "code"),
    );
    const at = pick(random, chain.slice(-3));
    const value = values.get(key, at);
    if (value === undefined) {
      const { generation } = follower;
      fetches.push(() => follower.enter(key, at, modelValue(at, key), generation));
    } else {
      hits++;
      assert.equal(value, modelValue(at, key), `${JSON.stringify(key)} at ${at.number}`);
    }
  };
  const steps = [mine, answer, answer, readOne, readOne, readOne, () => fetches.shift()?.()];
  for (let step = 0; step < STEPS; step++) {
    pick(random, steps)();
    if (random() < 0.7) {
      await nextTick();
    }
  }
  const head = chain.at(-1);
  assert.ok(head);
  while (follower.untilApplied(head) !== undefined) {
    answer();
    await nextTick();
  }
  assert.equal(values.head?.hash, head.hash);
  return hits;
};

test("values are those of a simple model, whatever the order of heads, write sets and fetched values", async () => {
  let hits = 0;
  for (let seed = 0; seed < SEEDS; seed++) {
    hits += await runRandomHeads(seed);
  }
  assert.ok(hits > 200, `${hits} hits`);
});
