import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../src/core/heads.ts";
import type { ComparedNode, StateDifference } from "../../src/state/originComparison.ts";
import { StateChecks } from "../../src/state/stateChecks.ts";
import type { StateKey } from "../../src/state/stateKey.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { fetchedValues } from "../support/builders/nodeState.ts";
import { createCost } from "./costRig.ts";

const BLOCK: BlockId = { number: 7n, hash: `0x${"77".repeat(32)}` };
const digits = (value: number): string => value.toString(16).padStart(64, "0");
const keyOf = (index: number, field: StateKey["field"] = "balance"): StateKey => ({
  field,
  address: `0x${index.toString(16).padStart(40, "0")}`,
  slot: undefined,
});

/** A comparison with one node that has this reader. */
const comparisonWith = (reader: ComparedNode["reader"]) => {
  const node: ComparedNode = { name: "one", origin: "one", available: true, reader };
  return { reader, nextNode: () => node, nodeBeside: () => node };
};

/** Values 0 to `count`. The node's value of each key is its index; what is known may differ. */
const createParts = (count: number, { wrong = -1, unitsPerKey = 1, auditUnits = 10_000 } = {}) => {
  const keys = Array.from({ length: count }, (_, index) => keyOf(index, index % 10 === 9 ? "nonce" : "balance"));
  const actual = new Map(keys.map((key, index) => [key, digits(index)]));
  const proven = new Set<StateKey>();
  const reads: (readonly StateKey[])[] = [];
  const differences: StateDifference[] = [];
  const telemetry = createTelemetry({ level: "silent" });
  const { cost, used, clock, total } = createCost();
  cost.budget.earnBySaving(50 * auditUnits);
  // The first 1,000 are the most used ones, and a sample begins with the others.
  for (const key of [...keys.slice(1_000), ...keys.slice(0, 1_000)]) {
    used.record(key, 1n);
  }
  for (const key of keys.slice(0, 1_000)) {
    used.record(key, 2n);
  }
  const read = async (asked: readonly StateKey[], _block: BlockId, onSpent: (units: number) => void) => {
    reads.push(asked);
    onSpent(asked.length * unitsPerKey);
    return fetchedValues({ values: new Map(asked.map((key) => [key, actual.get(key) ?? ""])) });
  };
  const options = {
    values: {
      ...{ used, head: BLOCK },
      sourceOf: () => undefined,
      hasProof: (key: StateKey) => proven.has(key),
      get: (key: StateKey) => (keys.indexOf(key) === wrong ? digits(1_000_000) : actual.get(key)),
    },
    comparison: comparisonWith({
      unitsFor: (asked) => asked.length * unitsPerKey,
      read,
      readSingly: read,
      fetch: async () => fetchedValues(),
    }),
    cost,
    random: () => 0,
    ...{ chain: "chain", telemetry },
    differences: { handle: (difference: StateDifference) => differences.push(difference) },
  };
  const counts = async () => {
    const { values } = await telemetry.metrics.stateCompared.get();
    return { compared: values.reduce((sum, { value }) => sum + value, 0), spent: total() };
  };
  return { keys, actual, proven, clock, options, reads, differences, counts };
};

test("an audit compares the most used values and others, and five nonces", async () => {
  const { options, reads, differences, counts } = createParts(3_000);
  await new StateChecks(options).audit();
  const [asked = []] = reads;
  assert.equal(asked.filter(({ field }) => field === "nonce").length, 5);
  assert.equal(asked.length, 1_805, "1,000 most used values and 1,000 others, without 195 nonces");
  assert.deepEqual([differences, (await counts()).compared], [[], 1_805]);
});

test("a wrong value is confirmed by a read of its own, and reported with both values", async () => {
  const { options, reads, differences, keys } = createParts(100, { wrong: 42 });
  await new StateChecks(options).audit();
  assert.equal(reads.length, 2);
  const [key = keyOf(0)] = keys.slice(42);
  assert.deepEqual(differences, [{ key, block: BLOCK, known: digits(1_000_000), actual: digits(42), node: "one" }]);
});

test("a bulk read that a single read contradicts is no difference", async () => {
  const { options, differences } = createParts(100);
  const comparison = comparisonWith({
    ...options.comparison.reader,
    read: async (asked: readonly StateKey[]) =>
      fetchedValues({ values: new Map(asked.map((key) => [key, digits(9_999)])) }),
  });
  await new StateChecks({ ...options, comparison }).audit();
  assert.deepEqual(differences, []);
});

test("an audit waits until enough is saved, and compares fewer values if each is expensive", async () => {
  const poor = createParts(1_000, { auditUnits: 500 });
  await new StateChecks(poor.options).audit();
  assert.deepEqual(poor.reads, []);
  const expensive = createParts(3_000, { unitsPerKey: 20 });
  await new StateChecks(expensive.options).audit();
  assert.ok((await expensive.counts()).spent <= 10_000);
  assert.ok((await expensive.counts()).compared > 200);
});

test("one answer in a hundred is compared, limited to one a second", async () => {
  const { options, clock, keys, reads, differences } = createParts(10);
  const [key = keyOf(0)] = keys.slice(3);
  const startMs = clock.nowMs;
  clock.random = 0.02;
  const samples = new StateChecks(options);
  const body = { body: new TextEncoder().encode('"0x3"') };
  samples.onLocalRead(key, BLOCK, body);
  assert.equal(reads.length, 0);
  clock.random = 0.005;
  samples.onLocalRead(key, BLOCK, body);
  clock.nowMs = startMs + 999;
  samples.onLocalRead(key, BLOCK, body);
  assert.equal(reads.length, 1);
  clock.nowMs = startMs + 1_000;
  samples.onLocalRead(key, BLOCK, { body: new TextEncoder().encode('"0x4"') });
  await new Promise(setImmediate);
  assert.deepEqual(differences, [{ key, block: BLOCK, known: digits(4), actual: digits(3), node: "one" }]);
});

test("an audit leaves out proven values, and asks nothing if all are proven", async () => {
  const { options, proven, keys, reads, counts } = createParts(20);
  for (const key of keys.slice(1)) {
    proven.add(key);
  }
  const checks = new StateChecks(options);
  await checks.audit();
  assert.deepEqual(reads, [keys.slice(0, 1)]);
  for (const key of keys) {
    proven.add(key);
  }
  await checks.audit();
  assert.deepEqual([reads.length, (await counts()).compared], [1, 1]);
});

test("one proven answer in a thousand is compared, limited to one in ten seconds, beside the others", async () => {
  const { options, clock, keys, reads, differences } = createParts(10);
  const [key = keyOf(0)] = keys.slice(3);
  const startMs = clock.nowMs;
  const samples = new StateChecks(options);
  const encode = (text: string) => new TextEncoder().encode(text);
  const read = (proof: "proven" | "checked", text = '"0x3"') =>
    samples.onLocalRead(key, BLOCK, { body: encode(text), proof });
  clock.random = 0.001;
  read("proven");
  assert.equal(reads.length, 0);
  clock.random = 0.0009;
  read("proven");
  read("checked");
  assert.equal(reads.length, 2);
  clock.nowMs = startMs + 9_999;
  read("proven");
  assert.equal(reads.length, 2);
  clock.nowMs = startMs + 10_000;
  read("proven", '"0x4"');
  assert.equal(reads.length, 3);
  await new Promise(setImmediate);
  assert.deepEqual(differences, [{ key, block: BLOCK, known: digits(4), actual: digits(3), node: "one" }]);
});

test("a node that returns no value is not audited again at once", async () => {
  const { options, reads } = createParts(10);
  const checks = new StateChecks({
    ...options,
    comparison: comparisonWith({
      ...options.comparison.reader,
      read: async (asked) => {
        reads.push(asked);
        return fetchedValues();
      },
    }),
  });
  await checks.audit();
  await checks.audit();
  assert.equal(reads.length, 1);
});
