import assert from "node:assert/strict";
import { test } from "node:test";
import type { StateKeys, StateReader } from "../../src/core/stateReader.ts";
import { type Address, type Hash, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import { CachedState } from "../../src/evm/reads/cachedState.ts";
import { completeOne } from "../support/builders/completedRun.ts";
import { plainSource } from "../support/fakes/plainSource.ts";

const engine = (await createEngines())({ chainId: 1n, fork: "prague" });
const create = () => new CachedState({ codes: new Map(), isNative: () => false });
const source = plainSource("nothing", new Map());
const fetch = (keys: StateKeys) => source.read(keys, new AbortController().signal);
/** Completes a run on a state of which nothing is known. */
const complete = <T>(run: (state: StateReader) => Promise<T>) => completeOne(engine, run, { known: create(), fetch });
const address = (number: number): Address => `0x${number.toString(16).padStart(40, "0")}`;
const slot = (number: number): Hash => `0x${number.toString(16).padStart(64, "0")}`;

test("a run is repeated until no value is missing, and results on guessed values are discarded", async () => {
  const seen: unknown[] = [];
  const { result, rounds } = await complete(async (state) => {
    const account = state.account(address(1));
    seen.push(account);
    return account === undefined ? state.storage(address(2), slot(1)).length : "a guess";
  });
  assert.deepEqual([result, rounds], [0, 2]);
  assert.equal(seen.length, 3);
});

test("an error on guessed values is discarded, and one on known values is thrown", async () => {
  await assert.rejects(
    complete(async (state) => {
      const guess = state.account(address(1));
      throw new Error(guess === undefined ? "true" : "guessed");
    }),
    /true/,
  );
});

test("a run whose reads depend on each other has one round per read", async () => {
  const { rounds } = await complete(async (state) => {
    let at = 1;
    while (at < 240 && state.account(address(at)) === undefined) {
      at++;
    }
  });
  assert.equal(rounds, 239);
});

test("a run ends at a limit of fetched values", async () => {
  let next = 0;
  await assert.rejects(
    complete(async (state) => {
      for (let read = 0; read < 2_000; read++) {
        state.account(address(++next));
      }
    }),
    {
      name: "TooManyReadsError",
      message: "execution aborted: it reads more than 10000 values that have to be fetched",
    },
  );
});

test("hashes of ancestors are fetched too", async () => {
  const { result, rounds } = await complete(async (state) => state.blockHash(9n));
  assert.deepEqual([result, rounds], [ZERO_HASH, 1]);
});
