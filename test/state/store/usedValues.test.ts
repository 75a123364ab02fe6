import assert from "node:assert/strict";
import { test } from "node:test";
import type { StateKey } from "../../../src/state/stateKey.ts";
import { UsedValues } from "../../../src/state/store/usedValues.ts";

const PERIOD_MS = 60_000;
const keyOf = (index: number): StateKey => ({
  field: "balance",
  address: `0x${index.toString(16).padStart(40, "0")}`,
  slot: undefined,
});

const create = () => {
  const clock = { nowMs: 0 };
  return { clock, used: new UsedValues(() => clock.nowMs) };
};

test("a read is repeated if one of the last period named an older block", () => {
  const { clock, used } = create();
  assert.equal(used.record(keyOf(1), 5n), "new");
  assert.equal(used.record(keyOf(1), 5n), "sameBlock");
  assert.equal(used.record(keyOf(1), 4n), "sameBlock");
  assert.equal(used.record(keyOf(1), 6n), "repeated");
  clock.nowMs = 1.5 * PERIOD_MS;
  assert.equal(used.record(keyOf(1), 6n), "sameBlock");
  assert.equal(used.record(keyOf(1), 7n), "repeated");
  clock.nowMs = 5 * PERIOD_MS;
  assert.equal(used.size, 0);
  assert.equal(used.record(keyOf(1), 8n), "new");
});

test("the most used keys are those that were read at the most blocks", () => {
  const { clock, used } = create();
  for (let block = 1n; block <= 5n; block++) {
    used.record(keyOf(3), block);
  }
  used.record(keyOf(1), 1n);
  clock.nowMs = 1.5 * PERIOD_MS;
  used.record(keyOf(2), 1n);
  used.record(keyOf(2), 2n);
  assert.deepEqual(used.mostUsedByClient(2), [keyOf(3), keyOf(2)]);
  assert.deepEqual(used.mostUsedByClient(9).length, 3);
});

test("a sample has each key once", () => {
  const { used } = create();
  for (let index = 0; index < 50; index++) {
    used.record(keyOf(index), 1n);
  }
  const sample = used.sample(20, Math.random);
  assert.equal(new Set(sample).size, 20);
  assert.equal(used.sample(90, Math.random).length, 50);
});

test("a client with many keys takes neither the places of others nor their share", () => {
  const { used } = create();
  for (let index = 0; index < 200_000; index++) {
    used.record(keyOf(1_000 + index), 1n, "many");
  }
  for (let index = 0; index < 3; index++) {
    assert.equal(used.record(keyOf(index), 1n, "few"), "new");
    assert.equal(used.record(keyOf(index), 2n, "few"), "repeated");
  }
  assert.ok(used.size < 100_000);
  const keys = new Set(used.mostUsedByClient(6).map(({ address }) => Number(address)));
  assert.equal(keys.size, 6);
  assert.ok([0, 1, 2].every((index) => keys.has(index)));
});

test("a single client has all places", () => {
  const { used } = create();
  for (let index = 0; index < 50; index++) {
    used.record(keyOf(index), 1n, "one");
  }
  assert.equal(used.mostUsedByClient(40).length, 40);
  assert.equal(used.mostUsedByClient(60).length, 50);
});
