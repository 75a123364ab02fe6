import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../src/core/heads.ts";
import { CallLearner } from "../../src/state/calls/callLearner.ts";
import type { CallResult } from "../../src/state/calls/callResult.ts";
import type { LearningLimits } from "../../src/state/stateCost.ts";
import type { StateKey } from "../../src/state/stateKey.ts";
import { StateLearner } from "../../src/state/stateLearner.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { until } from "../support/clients/until.ts";
import { createCost } from "./costRig.ts";

const BLOCK: BlockId = { number: 7n, hash: `0x${"77".repeat(32)}` };
const LIMITS: LearningLimits = { share: 0.1, unitsPerMinute: 1_000 };
const ANSWER: CallResult = {
  ...{ body: new Uint8Array(0), block: BLOCK, header: { feeRecipient: "", gasLimit: "" }, generation: 0, node: "node" },
  ...{ isRepeatable: true, reads: { keys: [], emptiness: [], addresses: new Set(), blockOpcodes: new Set() } },
};
const keysOf = (count: number): StateKey[] =>
  Array.from({ length: count }, (_, index) => ({
    field: "balance",
    address: `0x${index.toString(16).padStart(40, "0")}`,
    slot: undefined,
  }));

const createBudget = (limits: Partial<LearningLimits> = {}) => {
  const { cost, used, clock, total } = createCost({ unitsOf: () => 20, learning: { ...LIMITS, ...limits } });
  return { cost, used, budget: cost.budget, clock, total };
};

test("requests that nodes answer add their share to the budget, up to what a minute allows", () => {
  const { budget, clock } = createBudget();
  assert.equal(budget.forLearning, 500);
  budget.spendOnLearning(500);
  assert.equal(budget.forLearning, 0);
  budget.earnByRequest(2_000);
  assert.equal(budget.forLearning, 200);
  budget.earnByRequest(1_000_000);
  assert.equal(budget.forLearning, 500, "500 of this minute are spent");
  clock.nowMs += 61_000;
  assert.equal(budget.forLearning, 1_000);
});

test("a client may use as much of a minute as it leaves to others", () => {
  const { budget, clock } = createBudget();
  budget.earnByRequest(1_000_000);
  assert.equal(budget.forLearningOf("one"), 500);
  budget.spendOnLearning(500, "one");
  assert.equal(budget.forLearningOf("one"), 0);
  assert.equal(budget.forLearningOf("other"), 250);
  clock.nowMs += 61_000;
  budget.earnByRequest(1_000_000);
  assert.equal(budget.forLearningOf("one"), 500);
});

test("proofs that a client requires count to its minute, and need not be earned", () => {
  const { budget, clock } = createBudget();
  budget.spendOnLearning(500);
  assert.equal(budget.forLearning, 0);
  assert.equal(budget.forProofsOf("one"), 250);
  budget.spendOnProofs(200, "one");
  assert.equal(budget.forProofsOf("one"), 50);
  assert.equal(budget.forProofsOf("other"), 150);
  budget.earnByRequest(1_000_000);
  assert.equal(budget.forLearning, 300, "700 of this minute are spent");
  clock.nowMs += 61_000;
  assert.equal(budget.forProofsOf("one"), 500);
});

/** Learns with both parts that learn in the background. A value costs a unit in both. */
const createBoth = (limits: Partial<LearningLimits>) => {
  const { cost, used, budget, total } = createBudget(limits);
  for (const [index, key] of keysOf(2_000).entries()) {
    used.record(key, 1n, `client ${index}`);
  }
  const learner = new StateLearner({
    values: { used, head: BLOCK, get: () => undefined },
    follower: { isFollowing: true },
    cost,
    loader: {
      unitsForValues: ({ length }) => length,
      loadValues: async (keys, _block, onSpent) => onSpent(keys.length),
    },
    nowMs: () => 0,
    ...{ chain: "chain", telemetry: createTelemetry({ level: "silent" }) },
  });
  /** Learns calls of these clients, which lack 10 values each. Returns the clients that were served. */
  const learnFor = async (...clients: readonly string[]): Promise<readonly string[]> => {
    const lacking = new Set(clients.keys().map(String));
    const served: string[] = [];
    const refusals: string[] = [];
    const calls = new CallLearner({
      values: { isReadable: () => true },
      follower: { untilApplied: () => undefined },
      cost,
      loader: {
        unitsFor: ({ length }) => length,
        load: async (keys, _block, onSpent) => onSpent(keys.length),
        mayProve: () => false,
      },
      blockTimeMs: () => 2_000,
      defaults: { get: async () => ({ gas: 0n, hasZeroSender: true, fromHeader: new Set() }) },
      runner: {
        run: async ({ key }) =>
          lacking.delete(key) ? { kind: "missing", keys: keysOf(10) } : { kind: "answer", answer: ANSWER, stated: [] },
      },
      table: {
        store: ({ key }) => served.push(clients[Number(key)] ?? ""),
        refuse: (_, refusal) => refusals.push(refusal),
      },
    });
    for (const [index, clientId] of clients.entries()) {
      calls.add({
        ...{ ...ANSWER, key: String(index), method: "eth_call", clientId },
        ...{ requiresProof: false, expected: undefined },
      });
    }
    await until(() => served.length + refusals.length === clients.length, "all calls are settled");
    assert.ok(refusals.every((refusal) => refusal === "budget"));
    return served;
  };
  return { budget, total, learner, learnFor };
};

test("values after a drop and values of calls are learned within one limit", async () => {
  const first = createBoth({ unitsPerMinute: 40 });
  await first.learner.learn();
  assert.equal(first.total(), 31);
  assert.deepEqual(await first.learnFor("one"), [], "the learner used what calls need");

  const second = createBoth({ unitsPerMinute: 40 });
  assert.deepEqual(await second.learnFor("one", "two", "three", "four"), ["one", "two", "three", "four"]);
  await second.learner.learn();
  assert.equal(second.total(), 40, "calls used what the learner needs");
});

test("the units of a load are divided among the clients whose calls need it", async () => {
  const { budget, learnFor } = createBoth({ unitsPerMinute: 80 });
  assert.deepEqual(await learnFor("one", "one", "one", "one", "two"), ["one", "one", "one", "one", "two"]);
  assert.equal(budget.forLearningOf("one"), 0);
  assert.equal(budget.forLearningOf("two"), 10);
  assert.deepEqual(await learnFor("one", "two"), ["two"]);
});
