import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { BlockId } from "../../../src/core/heads.ts";
import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import { packWrites } from "../../../src/state/store/packedWrites.ts";
import { ValueStore } from "../../../src/state/store/valueStore.ts";
import { hashOf } from "../../support/builders/heads.ts";

const CACHE_BYTES = 128 * 1024 * 1024;
const MAX_BYTES_PER_SLOT = 200;
const SLOTS = 200_000;
const ACCOUNTS = 100;
const SLOTS_PER_ACCOUNT = 20;

const word = (value: number): Hash => `0x${value.toString(16).padStart(64, "0")}`;
const address = (value: number): Address => `0x${value.toString(16).padStart(40, "0")}`;
const block = (number: number): BlockId => ({ number: BigInt(number), hash: hashOf(number) });

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

/** Returns the bytes of the heap and outside it, after garbage was collected. */
const usedBytes = (): number => {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

test("a known slot costs at most 200 bytes", () => {
  const before = usedBytes();
  const values = new ValueStore(CACHE_BYTES);
  values.begin(block(1));
  for (let slot = 0; slot < SLOTS; slot++) {
    const key = { field: "slot", address: address(slot % 1_000), slot: word(slot) } as const;
    values.add(key, block(1), word(slot).slice(2));
  }
  const bytes = (usedBytes() - before) / SLOTS;
  assert.equal(values.size, SLOTS);
  assert.ok(bytes <= MAX_BYTES_PER_SLOT, `${bytes} bytes a slot`);
});

/** Slices end between two steps (runSliced), so that the work of a step is the longest turn. */
test("a block is applied in a step for each key that it writes", () => {
  const values = new ValueStore(CACHE_BYTES);
  values.begin(block(0));
  const accounts = Array.from({ length: ACCOUNTS }, (_, account) => {
    const slots = Array.from({ length: SLOTS_PER_ACCOUNT }, (__, slot) => [word(slot), Uint8Array.of(1)] as const);
    return [address(account), { slots: new Map(slots) }] as const;
  });
  const steps = values.apply({ block: block(1), packed: packWrites(new Map(accounts)), grade: "checked" });
  assert.equal([...steps].length, ACCOUNTS * SLOTS_PER_ACCOUNT);
});
