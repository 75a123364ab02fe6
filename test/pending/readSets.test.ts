import assert from "node:assert/strict";
import { test } from "node:test";
import type { StateKeys } from "../../src/core/stateReader.ts";
import { type Address, formatWord, ZERO_ADDRESS, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { DEPOSIT_TYPE } from "../../src/ethereum/transaction.ts";
import type { Prepared } from "../../src/pending/executeTransaction.ts";
import { ReadSets } from "../../src/pending/expectedKeys.ts";

const CALLS = 1_200;
/** The most of one call. */
const KEYS = 512;
/** With some 460 bytes each, a quarter of the heap of their thread. */
const MAX_KEYS = 300_000;

const contract = (index: number): Address => `0x${index.toString(16).padStart(40, "0")}`;

const callOf = (to: Address): Prepared => ({
  transaction: {
    ...{ type: DEPOSIT_TYPE, hash: ZERO_HASH, sourceHash: ZERO_HASH, from: ZERO_ADDRESS, mint: 0n, isSystemTx: false },
    ...{ to, value: 0n, gas: 0n, raw: new Uint8Array(0), input: new Uint8Array(4) },
  },
});

const slotsOf = (address: Address): StateKeys => ({
  accounts: [],
  slots: Array.from({ length: KEYS }, (_, slot) => [address, formatWord(slot)] as const),
  blockHashes: [],
});

test("the keys of all calls have one limit, which the heap of their thread can hold", () => {
  const sets = new ReadSets();
  const calls = Array.from({ length: CALLS }, (_, index) => callOf(contract(index + 1)));
  for (const [index, call] of calls.entries()) {
    sets.learn(call, slotsOf(contract(index + 1)));
  }
  const slots = sets.of(calls).flatMap((keys) => keys.slots);
  assert.ok(slots.length <= MAX_KEYS, `${slots.length} keys`);
  assert.ok(slots.length > MAX_KEYS - 2 * KEYS, `${slots.length} keys`);
  assert.equal(slots.at(-1)?.[0], contract(CALLS), "the newest stay");
});
