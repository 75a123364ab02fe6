import assert from "node:assert/strict";
import { test } from "node:test";
import type { StateValues } from "../../src/core/stateReader.ts";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../src/ethereum/keccak.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import type { ExecutionState } from "../../src/evm/executionState.ts";
import { CachedState } from "../../src/evm/reads/cachedState.ts";
import { type FoundKeys, KeySearch } from "../../src/evm/reads/keySearch.ts";
import { WrittenState } from "../../src/evm/reads/writtenState.ts";

const engine = (await createEngines())({ chainId: 1n, fork: "prague" });
const CONTRACT: Address = `0x${"aa".repeat(20)}`;
const slot = (number: number): Hash => `0x${number.toString(16).padStart(64, "0")}`;

const valuesOf = (slots: readonly number[]): StateValues => ({
  accounts: [[CONTRACT, { nonce: 1n, balance: 0n, codeHash: EMPTY_CODE_HASH }]],
  codes: [],
  slots: slots.map((number) => [CONTRACT, slot(number), Uint8Array.of(7)] as const),
  blockHashes: [],
});

/** Searches for the keys of these steps, of which only the account is known. `executed` has the position of each execution. */
const createSearch = (steps: readonly ((state: ExecutionState) => unknown)[], limits: { maxKeys?: number } = {}) => {
  const known = new CachedState({ codes: new Map(), isNative: () => false });
  known.add(valuesOf([]));
  const executed: number[] = [];
  const search = new KeySearch({
    ...{ maxKeys: 100, maxMs: Number.POSITIVE_INFINITY, ...limits },
    readerOf: (missing, guesses) => known.reader(missing, guesses),
    run: {
      createState: (reader) => engine.createState(reader),
      execute: async ({ step }) => {
        for (const [at, execute] of steps.entries()) {
          await step((state) => {
            executed.push(at);
            return execute(state);
          });
        }
      },
    },
  });
  return { search, known, executed };
};

const read = (number: number) => (state: ExecutionState) => state.storageOf(CONTRACT, slot(number));
const slotsOf = (found: readonly FoundKeys[]) =>
  found.map(({ step, keys }) => [step, keys.slots.map(([, key]) => key)]);

test("a pass finds what each step lacks, and a step that lacked nothing is not executed again", async () => {
  const { search, known, executed } = createSearch([read(1), read(2)]);
  assert.deepEqual(slotsOf(await search.pass([])), [
    [0, [slot(1)]],
    [1, [slot(2)]],
  ]);
  known.add(valuesOf([1, 2]));
  assert.deepEqual(await search.pass([]), []);
  assert.deepEqual(executed, [0, 1, 0, 1]);
  await search.pass([]);
  assert.deepEqual(executed.slice(4), [0], "the first step is known to lack a value");
});

test("a step that lacked a value in fact is executed again, and those before it are not", async () => {
  const { search, known, executed } = createSearch([read(1), read(2), read(3)]);
  known.add(valuesOf([1, 2, 3]));
  await search.pass([]);
  executed.length = 0;
  await search.pass(["the first step's result"]);
  assert.deepEqual(executed, [1]);
});

test("a closed step is not executed again", async () => {
  const { search, executed } = createSearch([read(1), read(2)]);
  await search.pass([]);
  search.close(1);
  executed.length = 0;
  assert.deepEqual(slotsOf(await search.pass([])), [[0, [slot(1)]]]);
  assert.deepEqual(executed, [0]);
});

/** The engine reads the slot before it writes it. */
const write = (state: ExecutionState) => {
  state.setStorage(CONTRACT, slot(1), Uint8Array.of(9));
  state.endTransaction(true);
};

test("chained steps read what the steps before them wrote, and independent ones do not", async () => {
  const pass = async (written?: WrittenState) => slotsOf(await createSearch([write, read(1)]).search.pass([], written));
  assert.deepEqual(await pass(new WrittenState()), [[0, [slot(1)]]]);
  assert.deepEqual(await pass(), [
    [0, [slot(1)]],
    [1, [slot(1)]],
  ]);
});

test("a pass ends at its limit of keys", async () => {
  const { search, executed } = createSearch([read(1), read(2), read(3)], { maxKeys: 1 });
  assert.equal((await search.pass([])).length, 2);
  assert.deepEqual(executed, [0, 1]);
});

test("the error of a step ends the pass, and the keys before it are found", async () => {
  const fail = () => {
    throw new Error("a guess");
  };
  const { search } = createSearch([read(1), fail, read(2)]);
  assert.deepEqual(slotsOf(await search.pass([])), [[0, [slot(1)]]]);
});

test("a key that several steps lack counts once for the limit of a pass", async () => {
  const { search } = createSearch([read(1), read(1), read(1), read(2)], { maxKeys: 1 });
  const found = await search.pass([]);
  assert.deepEqual(
    found.map(({ step }) => step),
    [0, 1, 2, 3],
  );
});
