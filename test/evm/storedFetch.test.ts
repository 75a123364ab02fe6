import assert from "node:assert/strict";
import { test } from "node:test";
import { storedFetch } from "../../src/evm/reads/storedFetch.ts";
import { createCall } from "../../src/jsonrpc/call.ts";

const hash = `0x${"ab".repeat(32)}` as const;
const ADDRESS = `0x${"11".repeat(20)}`;
const read = (method: string, ...params: string[]) => createCall(method, [...params, { blockHash: hash }]);
const CALLS = [
  read("eth_getBalance", ADDRESS),
  read("eth_getStorageAt", ADDRESS, "0x1"),
  read("debug_traceCall", "{}"),
];

const create = () => {
  const stored = new Map<string, Uint8Array>();
  const batches: string[][] = [];
  const fetch = storedFetch({
    fetch: async (calls) => {
      batches.push(calls.map(({ method }) => method));
      return calls.map(({ method }) => (method === "eth_getStorageAt" ? new Error("down") : `response of ${method}`));
    },
    store: { get: async (key) => stored.get(key), set: (key, value) => void stored.set(key, value) },
    isFinal: ({ number }) => number <= 10n,
  });
  return { fetch, batches, stored };
};

test("values of final blocks are stored, errors and traces are not, and results are in order", async () => {
  const { fetch, batches } = create();
  const first = await fetch(CALLS, { number: 10n, hash });
  const second = await fetch(CALLS, { number: 10n, hash });
  assert.deepEqual(batches, [
    ["eth_getBalance", "eth_getStorageAt", "debug_traceCall"],
    ["eth_getStorageAt", "debug_traceCall"],
  ]);
  assert.deepEqual(second, first);
  assert.equal(second[0], "response of eth_getBalance");
  assert.ok(second[1] instanceof Error);
});

test("no value of a block that is not final is stored", async () => {
  const { fetch, batches, stored } = create();
  await fetch(CALLS, { number: 11n, hash });
  await fetch(CALLS, { number: 11n, hash });
  assert.equal(batches[1]?.length, 3);
  assert.equal(stored.size, 0);
});
