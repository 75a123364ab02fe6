import assert from "node:assert/strict";
import { test } from "node:test";
import type { StateFetch, StateOutcomes } from "../../../src/core/stateFetch.ts";
import type { StateKeys } from "../../../src/core/stateReader.ts";
import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import { RpcError } from "../../../src/jsonrpc/rpcError.ts";
import { FairGate } from "../../../src/limits/fairGate.ts";
import { INTERNAL_OWNER } from "../../../src/limits/fairQueue.ts";
import { partsOf } from "../../../src/state/fetch/foundValues.ts";
import { accountKeys, type StateKey, slotKey, ZERO_VALUE } from "../../../src/state/stateKey.ts";
import { ValueStore } from "../../../src/state/store/valueStore.ts";
import { WriteSetWaits } from "../../../src/state/writeSetWaits.ts";
import { createTelemetry } from "../../../src/telemetry/telemetry.ts";
import { createHeads } from "../../support/builders/heads.ts";
import { createNodeState } from "../../support/builders/nodeState.ts";

const BLOCK = { number: 7n, hash: `0x${"ab".repeat(32)}` } as const;
const [ONE, TWO]: Address[] = [`0x${"11".repeat(20)}`, `0x${"22".repeat(20)}`];
if (ONE === undefined || TWO === undefined) {
  throw new Error("two addresses");
}
const SLOT: Hash = `0x${"0".repeat(63)}1`;
const SIGNAL = new AbortController().signal;
const keys = (accounts: readonly Address[], slots: readonly (readonly [Address, Hash])[] = []): StateKeys => ({
  accounts,
  slots,
  blockHashes: [],
});

/** A fetch with a response per method, which counts its batches. */
const fakeFetch = (more: Readonly<Record<string, (params: readonly unknown[]) => unknown>> = {}) => {
  const answers: Readonly<Record<string, (params: readonly unknown[]) => unknown>> = {
    eth_getBalance: () => "0x5",
    eth_getTransactionCount: () => "0x1",
    eth_getCode: () => "0x6001",
    eth_getStorageAt: () => `0x${"0".repeat(62)}2a`,
    eth_getBlockByNumber: () => ({ hash: `0x${"cd".repeat(32)}` }),
    ...more,
  };
  const batches: string[][] = [];
  const fetch: StateFetch = async (calls) => {
    batches.push(calls.map(({ method }) => method));
    return {
      outcomes: calls.map(({ method, params }) => answers[method]?.(params) ?? new RpcError(-32601, "no such method")),
    };
  };
  return { fetch, batches };
};
const MAX_BYTES = 1_000_000;

test("missing values are fetched in one batch by the block's hash, and cached", async () => {
  const blocks: unknown[] = [];
  const note = (answer: unknown) => (params: readonly unknown[]) => {
    blocks.push(params.at(-1));
    return answer;
  };
  const node = fakeFetch({ eth_getBalance: note("0x5"), eth_getStorageAt: note("0x2a") });
  const source = createNodeState({ fetch: node.fetch, maxBytes: MAX_BYTES }).at(BLOCK);
  const wanted = { ...keys([ONE, TWO], [[ONE, SLOT]]), blockHashes: [3n] };
  const values = await source.read(wanted, SIGNAL);
  assert.deepEqual(blocks, Array(3).fill({ blockHash: BLOCK.hash }));
  assert.equal(values.accounts[0]?.[1]?.balance, 5n);
  assert.equal(values.codes.length, 1);
  assert.deepEqual(values.slots[0]?.[2], Uint8Array.of(42));
  assert.deepEqual(values.blockHashes, [[3n, `0x${"cd".repeat(32)}`]]);
  await source.read(wanted, SIGNAL);
  assert.equal(node.batches.length, 1);
});

for (const [name, method, value] of [
  ["balance", "eth_getBalance", "pending"],
  ["nonce", "eth_getTransactionCount", []],
  ["code", "eth_getCode", {}],
  ["slot", "eth_getStorageAt", 1],
  ["block hash", "eth_getBlockByNumber", { hash: 1 }],
  ["hash of zero", "eth_getBlockByNumber", { hash: `0x${"00".repeat(32)}` }],
] as const) {
  test(`a ${name} of another form is an error of the node, and not of forebay`, async () => {
    const node = fakeFetch({ [method]: () => value });
    const source = createNodeState({ fetch: node.fetch, maxBytes: MAX_BYTES }).at(BLOCK);
    const wanted = { ...keys([ONE], [[ONE, SLOT]]), blockHashes: [3n] };
    await assert.rejects(async () => source.read(wanted, SIGNAL), {
      name: "RpcError",
      message: /^a node returned an invalid /,
      status: 503,
    });
  });
}

test("reads in flight are shared", async () => {
  const node = fakeFetch();
  const state = createNodeState({ fetch: node.fetch, maxBytes: MAX_BYTES });
  await Promise.all([1, 2, 3].map(() => state.at(BLOCK).read(keys([ONE]), SIGNAL)));
  assert.equal(node.batches.length, 1);
});

test("an empty account is absent, and a node's error reaches the reader and is not cached", async () => {
  let isDown = true;
  const node = fakeFetch({
    eth_getBalance: () => (isDown ? new RpcError(-32000, "missing trie node") : "0x0"),
    eth_getTransactionCount: () => "0x0",
    eth_getCode: () => "0x",
  });
  const source = createNodeState({ fetch: node.fetch, maxBytes: MAX_BYTES }).at(BLOCK);
  await assert.rejects(source.read(keys([ONE]), SIGNAL), /missing trie node/);
  isDown = false;
  assert.deepEqual((await source.read(keys([ONE]), SIGNAL)).accounts, [[ONE, undefined]]);
});

const HINT = { calls: [{ from: ONE, to: TWO }], stateOverrides: undefined };
const traced = (account: object) => ({ debug_traceCall: () => ({ [TWO]: account }) });
const PRESTATE = { balance: "0x5", nonce: 1, code: "0x6001", storage: { [SLOT]: `0x${"0".repeat(62)}07` } };

test("values that a tracer predicted are fetched with the first batch", async () => {
  const node = fakeFetch(traced(PRESTATE));
  const source = createNodeState({ fetch: node.fetch, maxBytes: MAX_BYTES }).at(BLOCK, HINT);
  const { slots } = await source.read(keys([ONE]), SIGNAL);
  assert.deepEqual(slots, [[TWO, SLOT, Uint8Array.of(7)]]);
  await source.read(keys([TWO], [[TWO, SLOT]]), SIGNAL);
  assert.equal(node.batches.length, 1);
});

test("overridden accounts are read from the node, and their traced values are never cached", async () => {
  const node = fakeFetch(traced({ ...PRESTATE, balance: "0xffff" }));
  const state = createNodeState({ fetch: node.fetch, maxBytes: MAX_BYTES });
  const hint = { ...HINT, stateOverrides: { [TWO.toUpperCase().replace("0X", "0x")]: { balance: "0xffff" } } };
  await state.at(BLOCK, hint).read(keys([ONE]), SIGNAL);
  const { accounts } = await state.at(BLOCK).read(keys([TWO], [[TWO, SLOT]]), SIGNAL);
  assert.equal(accounts[0]?.[1]?.balance, 5n);
});

test("a trace that contradicts a value of the node is ignored", async () => {
  const node = fakeFetch(traced({ ...PRESTATE, nonce: 9 }));
  const source = createNodeState({ fetch: node.fetch, maxBytes: MAX_BYTES }).at(BLOCK, HINT);
  const values = await source.read(keys([TWO]), SIGNAL);
  assert.equal(values.accounts[0]?.[1]?.nonce, 1n);
  assert.deepEqual(values.slots, []);
});

test("cached values are read again in the next epoch", async () => {
  const node = fakeFetch(traced(PRESTATE));
  let epoch = "1";
  const state = createNodeState({ fetch: node.fetch, maxBytes: MAX_BYTES, epoch: () => epoch });
  const first = state.at(BLOCK);
  await first.read(keys([ONE]), SIGNAL);
  await state.at(BLOCK).read(keys([ONE]), SIGNAL);
  assert.equal(node.batches.length, 1);
  epoch = "2";
  const second = state.at(BLOCK);
  assert.notEqual(second.id, first.id, "threads cache values by the id");
  await second.read(keys([ONE]), SIGNAL);
  assert.equal(node.batches.length, 2);
});

test("a value that was requested before all values were dropped is not found after it", async () => {
  const node = fakeFetch();
  const held = Promise.withResolvers<void>();
  let fetches = 0;
  const fetch: StateFetch = async (calls) => {
    fetches++;
    const outcomes = await node.fetch(calls);
    await (fetches === 1 ? held.promise : undefined);
    return outcomes;
  };
  const store = new ValueStore(0, MAX_BYTES);
  const state = createNodeState({ fetch, maxBytes: MAX_BYTES, known: { store } });
  const before = state.at(BLOCK);
  const first = before.read(keys([ONE]), SIGNAL);
  store.clear();
  const after = state.at(BLOCK);
  assert.notEqual(after.id, before.id, "threads cache values by the id");
  await after.read(keys([ONE]), SIGNAL);
  assert.equal(fetches, 2, "it does not wait for the read of before");
  held.resolve();
  await first;
  store.clear();
  await state.at(BLOCK).read(keys([ONE]), SIGNAL);
  assert.equal(fetches, 3);
});

/** What is known after the block. */
const knownWith = (...values: readonly (readonly [StateKey, string])[]) => {
  const store = new ValueStore(MAX_BYTES, MAX_BYTES);
  store.begin(BLOCK);
  for (const [key, value] of values) {
    store.add(key, BLOCK, value);
  }
  const telemetry = createTelemetry({ level: "silent" });
  const waits = new WriteSetWaits({ chain: "chain", telemetry, waitMs: 0, blockTimeMs: () => 0 });
  const cost = { unitsOf: () => 1, onRead: () => undefined };
  const follower = { untilApplied: () => undefined, beginRead: () => () => undefined };
  const heads = { current: () => createHeads({ latest: 7 }) };
  return { known: { store, followed: { follower, cost, waits } }, heads, maxBytes: MAX_BYTES };
};
const BOTH = { from: "both" } as const;
const SEVEN = `${"0".repeat(63)}7`;

test("known values are not fetched, and a trace that contradicts one is ignored", async () => {
  const node = fakeFetch(traced(PRESTATE));
  const known = knownWith(...accountKeys(TWO).map((key) => [key, ZERO_VALUE] as const));
  const source = createNodeState({ fetch: node.fetch, ...known }).at(BLOCK, HINT, BOTH);
  assert.equal(source.id, `${BLOCK.hash}:${known.known.store.beginnings}::known`);
  const values = await source.read(keys([ONE, TWO]), SIGNAL);
  assert.deepEqual(
    values.accounts.map(([address, account]) => [address, account?.balance]),
    [
      [TWO, undefined],
      [ONE, 5n],
    ],
  );
  assert.deepEqual(values.slots, []);
  assert.equal(node.batches.flat().filter((method) => method === "eth_getBalance").length, 1);
});

test("of an account that is known in part, only the other values are fetched", async () => {
  const [balance, nonce, code] = accountKeys(TWO);
  assert.ok(balance && nonce && code);
  const create = () => {
    const known = knownWith([balance, SEVEN]);
    known.known.store.add(code, BLOCK, known.known.store.storeCode(Uint8Array.of(1)));
    return known;
  };
  const node = fakeFetch(traced(PRESTATE));
  const state = createNodeState({ fetch: node.fetch, ...create() });
  const { accounts } = await state.at(BLOCK, undefined, BOTH).read(keys([TWO]), SIGNAL);
  assert.deepEqual(
    accounts.map(([, account]) => [account?.balance, account?.nonce]),
    [[7n, 1n]],
  );
  assert.deepEqual(node.batches, [["eth_getTransactionCount"]]);
  const other = createNodeState({ fetch: node.fetch, ...create() });
  const values = await other.at(BLOCK, HINT, BOTH).read(keys([ONE]), SIGNAL);
  assert.deepEqual(
    values.accounts.map(([address]) => address),
    [ONE],
    "a trace contradicts the known balance, so that the rest of the account is not known",
  );
});

test("a run from known values gets no others, and learns how good the ones are that it got", async () => {
  const [balance, nonce, code] = accountKeys(TWO);
  const slot = slotKey(TWO, SLOT);
  assert.ok(balance && nonce && code);
  const known = knownWith([code, ZERO_VALUE], [balance, SEVEN]);
  known.known.store.add(slot, BLOCK, SEVEN, "proven");
  const node = fakeFetch();
  const state = createNodeState({ fetch: node.fetch, ...known });
  const run = state.at(BLOCK, undefined, { from: "known" });
  const { accounts, slots } = await run.read(keys([TWO], [[TWO, SLOT]]), SIGNAL);
  assert.deepEqual([accounts[0]?.[1]?.balance, accounts[0]?.[1]?.nonce, slots.length], [7n, 0n, 1]);
  assert.deepEqual(run.grades.guessesAmong({ keys: [balance, nonce], emptiness: [TWO] }), [nonce]);
  assert.deepEqual(run.grades.unprovenAmong([balance, slot]), [balance]);
  assert.deepEqual([run.grades.weakestOf([slot]), run.grades.weakestOf([slot, balance])], ["proven", "stated"]);
  await assert.rejects(run.read(keys([], [[ONE, SLOT]]), SIGNAL), /1 values are not known/);
  assert.deepEqual(run.missing, [slotKey(ONE, SLOT)]);
  await assert.rejects(run.read({ ...keys([]), blockHashes: [3n] }, SIGNAL), /not known/);
  assert.deepEqual(node.batches, []);
});

test("a value that another request could not fetch is fetched again", async () => {
  const failing = Promise.withResolvers<StateOutcomes>();
  const node = fakeFetch();
  let fetches = 0;
  const fetch: StateFetch = (calls) => (fetches++ === 0 ? failing.promise : node.fetch(calls));
  const state = createNodeState({ fetch, maxBytes: MAX_BYTES });
  const first = state.at(BLOCK).read(keys([ONE]), SIGNAL);
  const second = state.at(BLOCK).read(keys([ONE]), SIGNAL);
  failing.reject(new Error("no node"));
  await assert.rejects(first, /no node/);
  assert.equal((await second).accounts[0]?.[1]?.balance, 5n);
});

test("a read that takes turns is counted as a whole, and sent in parts until one fails", async () => {
  const accounts = Array.from({ length: 70 }, (_, index): Address => `0x${index.toString(16).padStart(40, "0")}`);
  const parts: number[] = [];
  const fetch: StateFetch = async (calls) => {
    parts.push(calls.length);
    throw new Error("no node");
  };
  const turns = new FairGate({ max: 1, overloaded: "too many" });
  let counted = 0;
  const source = createNodeState({ fetch, maxBytes: MAX_BYTES }).at(BLOCK, undefined, {
    takeTurn: (task) => turns.run(INTERNAL_OWNER, task),
    onRead: (calls) => {
      counted += calls;
    },
  });
  await assert.rejects(source.read(keys(accounts), SIGNAL), /no node/);
  await turns.run(INTERNAL_OWNER, async () => undefined);
  assert.deepEqual([counted, parts], [3 * accounts.length, [100]]);
});

test("a part has up to 100 calls, and slots are read with the last one, wherever they are listed", () => {
  const listed = Array.from({ length: 50 }, () => [...accountKeys(ONE), slotKey(ONE, SLOT)]).flat();
  assert.deepEqual(
    partsOf(listed).map((part) => [part.length, part.filter(({ field }) => field === "slot").length]),
    [
      [100, 0],
      [100, 50],
    ],
  );
});

test("a prefetch method that a node rejects is not used again, and one that fails is", async () => {
  const node = fakeFetch({ eth_createAccessList: () => new RpcError(3, "execution reverted") });
  const state = createNodeState({ fetch: node.fetch, maxBytes: MAX_BYTES });
  await state.at(BLOCK, HINT).read(keys([ONE]), SIGNAL);
  await state.at(BLOCK, HINT).read(keys([TWO]), SIGNAL);
  const ahead = node.batches.map((methods) => methods.filter((method) => !method.startsWith("eth_get")));
  assert.deepEqual(ahead, [["debug_traceCall", "eth_createAccessList"], ["eth_createAccessList"]]);
});
