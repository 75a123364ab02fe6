import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTick } from "node:timers/promises";
import { createRandom, pick } from "../support/builders/randomValues.ts";
import {
  createModelBlock,
  firstModelBlock,
  MODEL_KEYS,
  type ModelBlock,
  modelValue,
} from "../support/builders/stateModel.ts";
import { createRig, FIRST } from "./followerRig.ts";

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
      const enter = follower.beginRead();
      fetches.push(() => enter({ values: [[key, modelValue(at, key)]] }, at));
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
