import assert from "node:assert/strict";
import { test } from "node:test";
import { createUnitsOf } from "../../src/access/providerUnits.ts";
import type { BlockId } from "../../src/core/heads.ts";
import { type Address, formatWord } from "../../src/ethereum/hex.ts";
import type { FetchedValues } from "../../src/state/fetch/stateFetcher.ts";
import { accountKey, type StateKey, slotKey } from "../../src/state/stateKey.ts";
import { ValueLoader, type ValueLoaderOptions } from "../../src/state/valueLoader.ts";

const BLOCK: BlockId = { number: 7n, hash: `0x${"7".repeat(64)}` };
const ZERO = "0".repeat(64);

const addressOf = (index: number): Address => `0x${index.toString(16).padStart(40, "0")}`;

/** Keys of slots: the same number of each account. */
const slotsOf = (accounts: number, ofEach: number): readonly StateKey[] =>
  Array.from({ length: accounts }, (_, at) =>
    Array.from({ length: ofEach }, (__, slot) => slotKey(addressOf(at), formatWord(BigInt(slot)))),
  ).flat();

/** A loader of values that nodes have, and the keys that it read in each way. `stated`: the key that is known without a proof. */
const createRig = (hasLists: boolean, stated?: StateKey) => {
  const unitsOf = createUnitsOf();
  const proven: StateKey[] = [];
  const bulk: StateKey[] = [];
  const known = new Map<StateKey, boolean>(stated === undefined ? [] : [[stated, false]]);
  const fetched = (keys: readonly StateKey[]): FetchedValues => ({
    values: new Map(keys.map((key) => [key, ZERO])),
    ...{ errors: new Map(), codes: new Map(), outcomes: [], units: 0, node: "node", isAgreed: undefined },
  });
  const reader: ValueLoaderOptions["reader"] = {
    unitsFor: ({ length }) => Math.ceil(length / 500) * unitsOf("eth_call"),
    read: async (keys) => {
      bulk.push(...keys);
      return fetched(keys);
    },
    readSingly: async () => fetched([]),
  };
  const loader = new ValueLoader({
    values: {
      get: (key) => (known.has(key) ? ZERO : undefined),
      code: () => undefined,
      gradeOf: (key) => (known.get(key) === true ? "proven" : "stated"),
    },
    follower: {
      beginRead:
        () =>
        ({ values, grade }) => {
          for (const [key] of values) {
            known.set(key, grade === "proven");
          }
        },
    },
    reader,
    unitsOf,
    proofs: {
      isWanted: () => hasLists,
      unitsFor: (keys) => new Set(keys.map(({ address }) => address)).size * unitsOf("eth_getProof"),
      readOwn: async (keys) => {
        proven.push(...keys);
        const values = keys.map((key) => [key, ZERO] as const);
        return [{ values, response: { body: Buffer.from("null"), status: {} } }];
      },
    },
  });
  const load = async (keys: readonly StateKey[]) => {
    const units = loader.unitsFor(keys, BLOCK);
    await loader.load(keys, BLOCK, () => undefined);
    return { units, proven: proven.length, bulk: bulk.length };
  };
  return { load };
};

test("unknown values come by proof where lists carry it, unless proofs cost over eight times as much", async () => {
  const cases = [
    { hasLists: false, keys: slotsOf(1, 1), expected: { units: 26, proven: 0, bulk: 1 } },
    { hasLists: true, keys: slotsOf(1, 1), expected: { units: 20, proven: 1, bulk: 0 } },
    { hasLists: true, keys: slotsOf(20, 1), expected: { units: 26, proven: 0, bulk: 20 } },
    { hasLists: true, keys: slotsOf(20, 50), expected: { units: 400, proven: 1_000, bulk: 0 } },
  ];
  for (const { hasLists, keys, expected } of cases) {
    assert.deepEqual(await createRig(hasLists).load(keys), expected);
  }
});

test("a value that is known without a proof is proven, whatever the others cost", async () => {
  const stated = accountKey(addressOf(100), "balance");
  const keys = [...slotsOf(20, 1), stated];
  assert.deepEqual(await createRig(true, stated).load(keys), { units: 46, proven: 1, bulk: 20 });
  assert.deepEqual(await createRig(false, stated).load(keys), { units: 26, proven: 0, bulk: 20 });
});
