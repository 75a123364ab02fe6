import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../src/core/heads.ts";
import type { ReadValues } from "../../src/state/stateFollower.ts";
import type { StateKey } from "../../src/state/stateKey.ts";
import { StateLearner } from "../../src/state/stateLearner.ts";
import { ValueLoader, type ValueLoaderOptions } from "../../src/state/valueLoader.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { fetchedValues } from "../support/builders/nodeState.ts";
import { createCost } from "./costRig.ts";

const BLOCK: BlockId = { number: 7n, hash: `0x${"77".repeat(32)}` };
const VALUE = "0".repeat(64);
const keyOf = (index: number, field: StateKey["field"] = "balance"): StateKey => ({
  field,
  address: `0x${index.toString(16).padStart(40, "0")}`,
  slot: undefined,
});

const createLearner = (keys: readonly StateKey[], known: readonly StateKey[] = [], learningUnits = 1_000) => {
  const clock = { nowMs: 0 };
  const entered: StateKey[] = [];
  const { cost, used, total } = createCost({ unitsPerMinute: learningUnits });
  for (const [index, key] of keys.entries()) {
    used.record(key, 1n, `client ${index}`);
  }
  const values = {
    ...{ used, head: BLOCK },
    get: (key: StateKey) => (known.includes(key) ? VALUE : undefined),
    code: () => undefined,
    gradeOf: () => undefined,
  };
  const follower = {
    generation: 3,
    isFollowing: true,
    beginRead:
      () =>
      ({ values: read }: ReadValues) =>
        entered.push(...[...read].map(([key]) => key)),
  };
  const reader: ValueLoaderOptions["reader"] = {
    unitsFor: ({ length }) => Math.ceil(length / 4) * 26,
    read: async (asked, _block, onSpent) => {
      onSpent(Math.ceil(asked.length / 4) * 26);
      return fetchedValues({ values: new Map(asked.map((key) => [key, VALUE])) });
    },
    readSingly: () => Promise.reject(new Error("no code is loaded")),
  };
  const learner = new StateLearner({
    ...{ values, follower, cost },
    loader: new ValueLoader({ values, follower, reader, unitsOf: cost.unitsOf }),
    nowMs: () => clock.nowMs,
    ...{ chain: "chain", telemetry: createTelemetry({ level: "silent" }) },
  });
  return { clock, entered, learner, spent: total };
};

test("the most used values that are not known are learned in bulk", async () => {
  const keys = [...Array.from({ length: 10 }, (_, index) => keyOf(index)), keyOf(99, "nonce")];
  const { clock, entered, learner, spent } = createLearner(keys, keys.slice(0, 4));
  await learner.learn();
  assert.deepEqual(entered, keys.slice(4, 10));
  await learner.learn();
  assert.equal(spent(), 52, "not twice within ten seconds");
  clock.nowMs = 10_000;
  await learner.learn();
  assert.equal(spent(), 104);
});

test("learning stays within the budget of the chain", async () => {
  const keys = Array.from({ length: 16 }, (_, index) => keyOf(index));
  const { entered, learner } = createLearner(keys, [], 60);
  await learner.learn();
  assert.deepEqual(entered, keys.slice(0, 8));
});

test("a few values are left to the reads of clients", async () => {
  const { entered, learner } = createLearner([keyOf(1), keyOf(2)]);
  await learner.learn();
  assert.deepEqual(entered, []);
});
