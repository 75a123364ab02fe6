import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createUnitsOf } from "../../../src/access/providerUnits.ts";
import { NodeError } from "../../../src/core/node.ts";
import type { StateFetch } from "../../../src/core/stateFetch.ts";
import { type Address, type Hash, ZERO_ADDRESS } from "../../../src/ethereum/hex.ts";
import { StateFetcher } from "../../../src/state/fetch/stateFetcher.ts";
import { parseSingle, singleCall } from "../../../src/state/fetch/stateRequests.ts";
import type { StateKey } from "../../../src/state/stateKey.ts";
import { type Anvil, AnvilError, startAnvil } from "../../devnet/anvil.ts";
import { latestBlock } from "../../devnet/sequencer.ts";

const CONTRACTS: readonly Address[] = [`0x${"c1".repeat(20)}`, `0x${"c2".repeat(20)}`];
const EMPTY: Address = `0x${"e0".repeat(20)}`;
const SLOTS = 300;

let anvil: Anvil;
let block: { readonly number: bigint; readonly hash: Hash };
const wordOf = (value: number): Hash => `0x${value.toString(16).padStart(64, "0")}`;

before(async () => {
  anvil = await startAnvil(["--no-mining"]);
  for (const [index, contract] of CONTRACTS.entries()) {
    await anvil.call("anvil_setCode", contract, `0x60${index}060005500`);
    await anvil.call("anvil_setBalance", contract, "0x1234567");
    await anvil.call("anvil_setNonce", contract, "0x5");
    const params = Array.from({ length: SLOTS }, (_, slot) => [contract, wordOf(slot), wordOf(slot * 7 + index)]);
    await anvil.callAll("anvil_setStorageAt", params);
  }
  await anvil.call("evm_mine");
  const { number, hash } = await latestBlock(anvil);
  block = { number: BigInt(number), hash };
});
after(() => anvil.close());

const keys = (): readonly StateKey[] => [
  ...CONTRACTS.flatMap((address) => [
    ...Array.from({ length: SLOTS }, (_, slot): StateKey => ({ field: "slot", address, slot: wordOf(slot) })),
  ]),
  ...[...CONTRACTS, EMPTY].flatMap((address) =>
    (["balance", "nonce", "code"] as const).map((field): StateKey => ({ field, address, slot: undefined })),
  ),
];

/** A fetch from the node that lacks some methods, and counts the calls. */
const createFetch = (lacking: readonly string[] = []) => {
  const calls = new Map<string, number>();
  const fetch: StateFetch = async (requests) => ({
    outcomes: await Promise.all(
      requests.map(async ({ method, params }) => {
        calls.set(method, (calls.get(method) ?? 0) + 1);
        if (lacking.includes(method)) {
          return new NodeError("unsupportedMethod", "anvil", `the method ${method} does not exist`);
        }
        try {
          return await anvil.call(method, ...(params as readonly unknown[]));
        } catch (error) {
          return new NodeError("other", "anvil", error instanceof AnvilError ? error.message : String(error));
        }
      }),
    ),
  });
  return { calls, fetch };
};

const read = async (fetch: StateFetch) => {
  const reader = new StateFetcher(fetch, createUnitsOf(), () => 1);
  let spent = 0;
  const expected = reader.unitsFor(keys(), block);
  const list = keys();
  const { values } = await reader.read(list, block, (units) => {
    spent += units;
  });
  return { reader, values, spent, expected, list };
};

const truth = async (list: readonly StateKey[]) => {
  const results = await Promise.all(
    list.map((key) => {
      const { method, params } = singleCall(key, block.hash);
      return anvil.call(method, ...(params as readonly unknown[]));
    }),
  );
  return list.map((key, index) => parseSingle(key, results[index]));
};

test("600 slots, balances and codes need three eth_calls, and have the node's values", async () => {
  const { calls, fetch } = createFetch();
  const { values, spent, expected, list } = await read(fetch);
  assert.deepEqual(
    list.map((key) => values.get(key)),
    await truth(list),
  );
  assert.deepEqual(Object.fromEntries(calls), { eth_call: 3, eth_getTransactionCount: 3 });
  assert.deepEqual([spent, expected], [3 * 26 + 3 * 20, 3 * 26 + 3 * 20]);
});

/** Precompiles, whose code cannot be replaced, and the accounts of the call itself. */
const SPECIAL: readonly Address[] = [1, 2, 4, 0x10, 0x100].map(
  (at): Address => `0x${at.toString(16).padStart(40, "0")}`,
);
const OWN: readonly Address[] = [1, 2].map((at): Address => `0xf04eba7f04eba7f04eba7f04eba7f04eba70000${at}`);

test("slots of precompiles, and values of the accounts that the call overrides, are the node's", async () => {
  const { fetch } = createFetch();
  const reader = new StateFetcher(fetch, createUnitsOf(), () => 1);
  const list = [...SPECIAL, ...OWN].flatMap((address): StateKey[] => [
    ...[1, 2, 32].map((slot): StateKey => ({ field: "slot", address, slot: wordOf(slot) })),
    ...(["balance", "code"] as const).map((field): StateKey => ({ field, address, slot: undefined })),
  ]);
  const { values } = await reader.read(list, block, () => undefined);
  assert.deepEqual(
    list.map((key) => values.get(key)),
    await truth(list),
  );
});

test("the balance of the zero address has a call of its own: a node may change it for the sender of a call", async () => {
  const { calls, fetch } = createFetch();
  const reader = new StateFetcher(fetch, createUnitsOf(), () => 1);
  const list = [ZERO_ADDRESS, OWN[0] ?? assert.fail()].map(
    (address): StateKey => ({ field: "balance", address, slot: undefined }),
  );
  await reader.read(list, block, () => undefined);
  assert.deepEqual(Object.fromEntries(calls), { eth_call: 1, eth_getBalance: 1 });
});

test("without code overrides, eth_getProof reads the values, and later reads begin with it", async () => {
  const { calls, fetch } = createFetch(["eth_call"]);
  const { reader, values, list } = await read(fetch);
  assert.deepEqual(
    list.map((key) => values.get(key)),
    await truth(list),
  );
  assert.equal(calls.get("eth_getProof"), 3);
  calls.clear();
  await reader.read(list, block, () => undefined);
  assert.equal(calls.get("eth_call"), undefined);
});

test("without both, the values are read one by one", async () => {
  const { fetch } = createFetch(["eth_call", "eth_getProof"]);
  const { values, list } = await read(fetch);
  assert.deepEqual(
    list.map((key) => values.get(key)),
    await truth(list),
  );
});

test("the response of a node that ignores overrides is discarded, and a fault of the nodes leaves values out", async () => {
  const { calls, fetch } = createFetch();
  const ignoring: StateFetch = (requests) =>
    fetch(
      requests.map((call) =>
        call.method === "eth_call" ? { ...call, params: (call.params as readonly unknown[]).slice(0, 2) } : call,
      ),
    );
  const { values, list } = await read(ignoring);
  assert.equal(values.size, list.length);
  assert.equal(calls.get("eth_getProof"), 3);
  const { values: none } = await read(() => Promise.reject(new Error("no node")));
  assert.equal(none.size, 0);
});
