import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../../src/core/heads.ts";
import { NodeDefaultsCache } from "../../../src/state/calls/nodeDefaults.ts";
import { createCost } from "../costRig.ts";

const NODE = "node";
const BLOCK: BlockId = { number: 1n, hash: `0x${"1".repeat(64)}` };
const TEN_MINUTES_MS = 600_000;
const WORDS = 12;
const BALANCE_WORD = 10;
/** The probe gives this to the sender. */
const BALANCE = 2n ** 96n - 1n;
const GAS_BEFORE = 21_002n;

/** The result of the probe: the gas, the sender's balance, and zero for all other opcodes. */
const words = (gas: bigint, balance = BALANCE): string => {
  const values = Array.from({ length: WORDS }, (_, at) => (at === 0 ? gas : at === BALANCE_WORD ? balance : 0n));
  return `0x${values.map((value) => value.toString(16).padStart(64, "0")).join("")}`;
};

test("the defaults of a node that executions alone use are read again after ten minutes", async () => {
  let nowMs = 0;
  let result: unknown = words(100n);
  let asked = 0;
  const cache = new NodeDefaultsCache({
    callNode: async (_node, calls) => {
      asked++;
      return calls.map(() => result);
    },
    headerOf: () => ({}),
    nowMs: () => nowMs,
    cost: createCost().cost,
    onOutdated: () => undefined,
  });
  const known = () => cache.known(NODE, BLOCK)?.gas;
  assert.equal(known(), undefined);
  await cache.get(NODE, BLOCK);
  nowMs += TEN_MINUTES_MS - 1;
  assert.equal(known(), 100n + GAS_BEFORE);
  assert.equal(asked, 1);
  result = words(50n);
  nowMs += 1;
  assert.equal(known(), 100n + GAS_BEFORE);
  await cache.get(NODE, BLOCK);
  assert.equal(known(), 50n + GAS_BEFORE);
  assert.equal(asked, 2);
  result = new Error("no answer");
  nowMs += TEN_MINUTES_MS;
  known();
  await cache.get(NODE, BLOCK);
  assert.equal(known(), undefined);
});

/** Returns how often answers were outdated, after each of these results. */
const outdatedAfter = async (...results: readonly unknown[]): Promise<readonly number[]> => {
  let nowMs = 0;
  let outdated = 0;
  let result: unknown;
  const cache = new NodeDefaultsCache({
    callNode: async (_node, calls) => calls.map(() => result),
    headerOf: () => ({}),
    nowMs: () => nowMs,
    cost: createCost().cost,
    onOutdated: () => {
      outdated++;
    },
  });
  const counts: number[] = [];
  for (const each of results) {
    result = each;
    nowMs += TEN_MINUTES_MS;
    await cache.get(NODE, BLOCK);
    counts.push(outdated);
  }
  return counts;
};

test("answers are outdated once a node gives calls less than half of the gas that it gave before", async () => {
  const failure = new Error("no answer");
  const gas = [1_000_000n, 700_000n, failure, 500_000n, 400_000n, 300_000n, 150_000n];
  const results = gas.map((each) => (typeof each === "bigint" ? words(each) : each));
  assert.deepEqual(await outdatedAfter(...results), [0, 0, 0, 0, 1, 1, 2]);
});

test("a sender that pays a fee has no defaults of zero, and answers from before are outdated", async () => {
  assert.deepEqual(await outdatedAfter(words(1n, BALANCE - 1n), words(1n, BALANCE - 1n)), [0, 0]);
  assert.deepEqual(await outdatedAfter(words(1n), words(1n, BALANCE - 1n), words(1n, BALANCE - 1n)), [0, 1, 1]);
});
