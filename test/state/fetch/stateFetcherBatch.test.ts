import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createUnitsOf } from "../../../src/access/providerUnits.ts";
import { NodeError } from "../../../src/core/node.ts";
import type { StateFetch } from "../../../src/core/stateFetch.ts";
import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import { StateFetcher, unitsOfSlot } from "../../../src/state/fetch/stateFetcher.ts";
import type { StateKey } from "../../../src/state/stateKey.ts";
import { type Anvil, startAnvil } from "../../devnet/anvil.ts";
import { latestBlock } from "../../devnet/sequencer.ts";

const ONE: Address = `0x${"c1".repeat(20)}`;
const TWO: Address = `0x${"c2".repeat(20)}`;
const SLOTS = 20;
const wordOf = (value: number): Hash => `0x${value.toString(16).padStart(64, "0")}`;

let anvil: Anvil;
let block: { readonly number: bigint; readonly hash: Hash };

before(async () => {
  anvil = await startAnvil(["--no-mining"]);
  for (const contract of [ONE, TWO]) {
    await anvil.call("anvil_setBalance", contract, "0x1234567");
    const params = Array.from({ length: SLOTS }, (_, slot) => [contract, wordOf(slot), wordOf(slot * 7 + 1)]);
    await anvil.callAll("anvil_setStorageAt", params);
  }
  await anvil.call("evm_mine");
  const { number, hash } = await latestBlock(anvil);
  block = { number: BigInt(number), hash };
});
after(() => anvil.close());

/** Slots of two contracts, one of them unset, between other reads. */
const reads = (): readonly StateKey[] => {
  const slots = (address: Address): StateKey[] =>
    [0, 1, 7, 19, 500].map((slot) => ({ field: "slot", address, slot: wordOf(slot) }));
  const slot = undefined;
  return [
    { field: "balance", address: ONE, slot },
    ...slots(ONE),
    { field: "nonce", address: ONE, slot },
    ...slots(TWO),
  ];
};

const createRig = (failure?: NodeError) => {
  const batches: string[][] = [];
  let nowMs = 1;
  const rig = { batches, failure, pass: (ms: number) => (nowMs += ms) };
  const fetch: StateFetch = async (calls) => {
    batches.push(calls.map(({ method }) => method));
    const outcomes = calls.map(({ method, params }) =>
      method === "eth_call" && rig.failure !== undefined
        ? rig.failure
        : anvil.call(method, ...(params as readonly unknown[])),
    );
    return { outcomes: await Promise.all(outcomes) };
  };
  const fetcher = new StateFetcher(fetch, createUnitsOf(), () => nowMs);
  const bulk = async (keys: readonly StateKey[]) => {
    const { values, errors } = await fetcher.fetch(keys, block);
    return keys.map((key) => values.get(key) ?? errors.get(key));
  };
  /** The same values, read one by one. */
  const plain = async (keys: readonly StateKey[]) => {
    const { values } = await fetcher.readSingly(keys, block, () => undefined);
    return keys.map((key) => values.get(key));
  };
  return { ...rig, rig, bulk, plain };
};

const unsupported = () => new NodeError("unsupportedMethod", "node", "no overrides");

test("one eth_call reads the slots of a batch, and all outcomes are those of the single reads", async () => {
  const { batches, bulk, plain } = createRig();
  const values = await bulk(reads());
  assert.deepEqual(batches, [["eth_getBalance", "eth_getTransactionCount", "eth_call"]]);
  assert.deepEqual(values, await plain(reads()));
  assert.equal(values[1], wordOf(1).slice(2));
});

test("slots of precompiles are read alone: their code cannot be replaced", async () => {
  const { bulk, plain } = createRig();
  const keys = [1, 4, 5].map(
    (precompile): StateKey => ({
      field: "slot",
      address: `0x${precompile.toString(16).padStart(40, "0")}`,
      slot: wordOf(7),
    }),
  );
  assert.deepEqual(await bulk(keys), await plain(keys));
});

test("one slot is read alone: an eth_call costs more", async () => {
  const { batches, bulk } = createRig();
  await bulk(reads().slice(0, 2));
  assert.deepEqual(batches, [["eth_getBalance", "eth_getStorageAt"]]);
});

test("nodes without overrides are asked for single slots, and for all of them at once after ten minutes again", async () => {
  const { batches, bulk, plain, rig } = createRig(unsupported());
  const values = await bulk(reads());
  assert.deepEqual(values, await plain(reads()));
  batches.length = 0;
  await bulk(reads());
  assert.equal(batches.flat().includes("eth_call"), false);
  rig.failure = undefined;
  rig.pass(600_000);
  await bulk(reads());
  assert.equal(batches.at(-1)?.includes("eth_call"), true);
});

for (const kind of ["timeout", "overloaded", "invalidAnswer", "missingData"] as const) {
  test(`a failure of kind ${kind} is the outcome of each slot, and the next batch is read in one call again`, async () => {
    const failure = new NodeError(kind, "node", "it failed");
    const { batches, bulk, rig } = createRig(failure);
    const outcomes = await bulk(reads());
    assert.equal(outcomes.filter((outcome) => outcome === failure).length, 10);
    assert.equal(batches.length, 1);
    rig.failure = undefined;
    assert.equal((await bulk(reads())).includes(failure), false);
    assert.equal(batches.at(-1)?.includes("eth_call"), true);
  });
}

test("a slot costs its part of the eth_call that reads it, if that is less", () => {
  const unitsOf = createUnitsOf({ eth_call: 30, eth_getStorageAt: 20 });
  assert.deepEqual(
    [0, 1, 2, 30, 1_000].map((slots) => unitsOfSlot(slots, unitsOf)),
    [0, 20, 15, 1, 0.06],
  );
});

test("the node that answered is named, unless several did", async () => {
  const unsupported = new NodeError("unsupportedMethod", "", "not supported");
  const named =
    (...names: string[]): StateFetch =>
    async (calls) => ({
      outcomes: calls.map(({ method }) => (method === "eth_call" ? unsupported : "0x1")),
      node: names.shift(),
    });
  const nodeOf = async (fetch: StateFetch): Promise<string | undefined> => {
    const { node } = await new StateFetcher(fetch, createUnitsOf(), () => 1).fetch(reads(), block);
    return node;
  };
  assert.equal(await nodeOf(named("one", "one")), "one");
  assert.equal(await nodeOf(named("one", "two")), undefined);
});
