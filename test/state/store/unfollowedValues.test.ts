import assert from "node:assert/strict";
import { test } from "node:test";
import type { StateKey } from "../../../src/state/stateKey.ts";
import { ValueStore } from "../../../src/state/store/valueStore.ts";
import { hashOf } from "../../support/builders/heads.ts";
import { addressOf } from "../../support/builders/stateModel.ts";

const MAX_BYTES = 8_000_000;
const MAX_BYTES_OF_VALUE = 130;
const digits = (value: number): string => value.toString(16).padStart(64, "0");
const slotKey = (slot: number): StateKey => ({ field: "slot", address: addressOf(0), slot: `0x${digits(slot)}` });

test("a value at one block is not found at another block", () => {
  const { unfollowed } = new ValueStore(0, MAX_BYTES);
  const [one, two] = ["one", "two"].map((name) => unfollowed.versionOf(name));
  assert.ok(one !== undefined && two !== undefined);
  unfollowed.enter(slotKey(0), one, digits(1));
  assert.equal(unfollowed.read(slotKey(0), one), digits(1));
  assert.equal(unfollowed.read(slotKey(0), two), undefined);
  assert.equal(unfollowed.versionOf("one"), one);
});

test("values fill their memory with at most 130 bytes each, and the oldest ones are evicted", () => {
  const store = new ValueStore(0, MAX_BYTES);
  const { unfollowed } = store;
  const count = Math.floor(MAX_BYTES / MAX_BYTES_OF_VALUE);
  const version = unfollowed.versionOf("block");
  for (let slot = 0; slot < 3 * count; slot++) {
    unfollowed.enter(slotKey(slot), version, digits(slot));
  }
  const found = Array.from({ length: 3 * count }, (_, slot) => unfollowed.read(slotKey(slot), version));
  assert.ok(found.filter((value) => value !== undefined).length >= count);
  assert.equal(found.at(-1), digits(3 * count - 1));
  assert.ok(store.bytes < 1.1 * MAX_BYTES, `${store.bytes} bytes`);
});

test("values of followed blocks and of others share the room, and end together", () => {
  const store = new ValueStore(MAX_BYTES);
  const { unfollowed } = store;
  const version = unfollowed.versionOf("block");
  const block = { number: 7n, hash: hashOf(7) };
  store.begin(block);
  store.add(slotKey(1), block, digits(1));
  unfollowed.enter(slotKey(1), version, digits(2));
  assert.deepEqual([store.get(slotKey(1), block), unfollowed.read(slotKey(1), version)], [digits(1), digits(2)]);
  assert.deepEqual(
    store.sample(10, () => 0),
    [slotKey(1)],
    "checks and rows have the followed values alone",
  );
  assert.equal([...store.takeChanges(block, true)].filter((change) => change !== undefined).length, 1);
  for (let slot = 2; slot < MAX_BYTES / 50; slot++) {
    unfollowed.enter(slotKey(slot), version, digits(slot));
  }
  assert.equal(store.get(slotKey(1), block), undefined, "it was not read for long");
  store.begin(block);
  assert.equal(store.size, 0);
  assert.equal(unfollowed.read(slotKey(1), version), undefined);
});
