import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { MemoryStore } from "../../src/cache/memoryStore.ts";
import { StateStore, type StoredState } from "../../src/cache/stateStore.ts";
import { storedFetch } from "../../src/evm/reads/storedFetch.ts";
import { createCall } from "../../src/jsonrpc/call.ts";
import { silent } from "../support/builders/silent.ts";
import { createStated } from "../support/builders/statedValues.ts";

const hash = `0x${"ab".repeat(32)}` as const;
const ADDRESS = `0x${"11".repeat(20)}`;
const read = (method: string, ...params: string[]) => createCall(method, [...params, { blockHash: hash }]);
const CALLS = [
  read("eth_getBalance", ADDRESS),
  read("eth_getStorageAt", ADDRESS, "0x1"),
  read("debug_traceCall", "{}"),
];

const create = () => {
  const stored = new Map<string, StoredState>();
  const node = { name: "node1", origin: "one" };
  const batches: string[][] = [];
  const fetch = storedFetch({
    fetch: async (calls, _, onNode) => {
      onNode?.(node.name);
      batches.push(calls.map(({ method }) => method));
      return calls.map(({ method }) => (method === "eth_getStorageAt" ? new Error("down") : `response of ${method}`));
    },
    store: {
      originOf: () => node.origin,
      get: async (key) => stored.get(key),
      set: (key, value) => void stored.set(key, { value, isServed: true, origin: node.origin }),
    },
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

const CODE = read("eth_getCode", ADDRESS);
const BALANCE = read("eth_getBalance", ADDRESS);
const FINAL = { number: 10n, hash } as const;

/** Nodes of two origins with a clock: `avoided` lists the origins that each fetch avoided. */
const withClock = (t: TestContext, statementOf: (origin: string, method: string) => string) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_000_000 });
  const nodes = ["one", "two"].map((origin) => ({ name: `node-${origin}`, origin, priority: 0 }));
  const stated = createStated({ nodes });
  const memory = new MemoryStore(1 << 20, silent());
  const avoided: (readonly string[])[] = [];
  const fetch = storedFetch({
    fetch: async (calls, _, onNode, avoidedOrigins = []) => {
      avoided.push(avoidedOrigins);
      const node = nodes.find(({ origin }) => !avoidedOrigins.includes(origin)) ?? assert.fail();
      onNode?.(node.name);
      return calls.map(({ method }) => statementOf(node.origin, method));
    },
    store: new StateStore({ keys: { prefix: "test:" }, memory }, stated),
    isFinal: () => true,
  });
  return { fetch, avoided, stated, tick: (ms: number) => t.mock.timers.tick(ms) };
};

test("a value of one origin is read from another after ten minutes, and then cached for days", async (t) => {
  const { fetch, avoided, tick } = withClock(t, (origin) => (origin === "one" ? "0x2a" : "0x02A"));
  assert.deepEqual(await fetch([BALANCE], FINAL), ["0x2a"]);
  tick(600_000 - 1);
  await fetch([BALANCE], FINAL);
  assert.deepEqual(avoided, [[]]);
  tick(1);
  await fetch([BALANCE], FINAL);
  assert.deepEqual(avoided, [[], ["one"]]);
  tick(6 * 86_400_000);
  await fetch([BALANCE], FINAL);
  assert.equal(avoided.length, 2);
});

test("neither of two different values is cached", async (t) => {
  const { fetch, avoided, tick } = withClock(t, (origin) => (origin === "one" ? "0x00" : "0x"));
  assert.deepEqual(await fetch([CODE], FINAL), ["0x00"]);
  tick(600_000);
  assert.deepEqual(await fetch([CODE], FINAL), ["0x"]);
  assert.deepEqual(await fetch([CODE], FINAL), ["0x"]);
  assert.deepEqual(avoided, [[], ["one"], ["one"]]);
});

test("values of a node that was found lying are read again", async (t) => {
  const { fetch, avoided, stated, tick } = withClock(t, () => "0x2a");
  await fetch([BALANCE], FINAL);
  const before = stated.epoch(Date.now());
  stated.markLiar("node-one");
  assert.notEqual(stated.epoch(Date.now()), before, "executions drop the values that they have in memory");
  tick(10_000);
  await fetch([BALANCE], FINAL);
  await fetch([BALANCE], FINAL);
  assert.deepEqual(avoided, [[], []]);
});
