import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { MemoryStore } from "../../../src/cache/memoryStore.ts";
import { StateStore, type StoredState } from "../../../src/cache/tieredStore.ts";
import type { BlockId } from "../../../src/core/heads.ts";
import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import { createCall } from "../../../src/jsonrpc/call.ts";
import { StateFetcher } from "../../../src/state/fetch/stateFetcher.ts";
import { storedFetch } from "../../../src/state/fetch/storedFetch.ts";
import type { StateKey } from "../../../src/state/stateKey.ts";
import { silent } from "../../support/builders/silent.ts";
import { createStated } from "../../support/builders/statedValues.ts";

const hash = `0x${"ab".repeat(32)}` as const;
const ADDRESS: Address = `0x${"11".repeat(20)}`;
const key = (field: StateKey["field"], slot?: Hash): StateKey => ({ field, address: ADDRESS, slot });
const BALANCE = key("balance");
const CODE = key("code");
const SLOT = key("slot", `0x${"1".padStart(64, "0")}`);
const TRACE = createCall("debug_traceCall", ["{}", { blockHash: hash }]);
const FINAL = { number: 10n, hash } as const;
const digits = (value: string): string => value.padStart(64, "0");

/** A node that has no slots. */
const outcomeOf = (method: string): unknown => (method === "eth_getStorageAt" ? new Error("down") : "0x2a");

const create = () => {
  const stored = new Map<string, StoredState>();
  const node = { name: "node1", origin: "one" };
  const batches: string[][] = [];
  const fetcher = new StateFetcher(
    async (calls, _, onNode) => {
      onNode?.(node.name);
      batches.push(calls.map(({ method }) => method));
      return calls.map(({ method }) => outcomeOf(method));
    },
    () => 1,
  );
  const fetch = storedFetch({
    fetch: fetcher.fetch,
    store: {
      originOf: () => node.origin,
      get: async (name) => stored.get(name),
      set: (name, value) => void stored.set(name, { value, isServed: true, origin: node.origin }),
    },
    isFinal: ({ number }) => number <= 10n,
  });
  return { fetch: (block: BlockId) => fetch([BALANCE, CODE, SLOT], [TRACE], block), batches, stored };
};

test("values of final blocks are stored, errors and traces are not, and results are in order", async () => {
  const { fetch, batches } = create();
  const first = await fetch(FINAL);
  const second = await fetch(FINAL);
  assert.deepEqual(batches, [
    ["eth_getBalance", "eth_getCode", "eth_getStorageAt", "debug_traceCall"],
    ["eth_getStorageAt", "debug_traceCall"],
  ]);
  assert.deepEqual(second.outcomes, first.outcomes);
  assert.deepEqual([...second.codes], [...first.codes]);
  assert.equal(second.values.get(BALANCE), digits("2a"));
  assert.equal(second.values.get(CODE), first.values.get(CODE));
  assert.ok(second.values.get(SLOT) instanceof Error);
});

test("values of the store have no name of a node: another one may have stated them", async () => {
  const { fetch } = create();
  assert.equal((await fetch(FINAL)).node, "node1");
  assert.equal((await fetch(FINAL)).node, undefined);
});

test("no value of a block that is not final is stored", async () => {
  const { fetch, batches, stored } = create();
  await fetch({ number: 11n, hash });
  await fetch({ number: 11n, hash });
  assert.equal(batches[1]?.length, 4);
  assert.equal(stored.size, 0);
});

/** Nodes of two origins with a clock: `avoided` lists the origins that each fetch avoided. */
const withClock = (t: TestContext, statementOf: (origin: string, method: string) => string) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_000_000 });
  const nodes = ["one", "two"].map((origin) => ({ name: `node-${origin}`, origin, priority: 0 }));
  const stated = createStated({ nodes });
  const memory = new MemoryStore(1 << 20, silent());
  const avoided: (readonly string[])[] = [];
  const fetcher = new StateFetcher(
    async (calls, _, onNode, avoidedOrigins = []) => {
      avoided.push(avoidedOrigins);
      const node = nodes.find(({ origin }) => !avoidedOrigins.includes(origin)) ?? assert.fail();
      onNode?.(node.name);
      return calls.map(({ method }) => statementOf(node.origin, method));
    },
    () => 1,
  );
  const stored = storedFetch({
    fetch: fetcher.fetch,
    store: new StateStore({ keys: { prefix: "test:" }, memory, stores: [] }, stated),
    isFinal: () => true,
  });
  /** Returns the value, of a code the code. */
  const fetch = async (read: StateKey): Promise<unknown> => {
    const { values, codes } = await stored([read], [], FINAL);
    const value = values.get(read);
    return read.field === "code" ? Buffer.from(codes.get(String(value)) ?? []).toString("hex") : value;
  };
  return { fetch, avoided, stated, tick: (ms: number) => t.mock.timers.tick(ms) };
};

test("a value of one origin is read from another after ten minutes, and then cached for days", async (t) => {
  const { fetch, avoided, tick } = withClock(t, (origin) => (origin === "one" ? "0x2a" : "0x02A"));
  assert.deepEqual(await fetch(BALANCE), digits("2a"));
  tick(600_000 - 1);
  await fetch(BALANCE);
  assert.deepEqual(avoided, [[]]);
  tick(1);
  await fetch(BALANCE);
  assert.deepEqual(avoided, [[], ["one"]]);
  tick(6 * 86_400_000);
  await fetch(BALANCE);
  assert.equal(avoided.length, 2);
});

test("neither of two different values is cached", async (t) => {
  const { fetch, avoided, tick } = withClock(t, (origin) => (origin === "one" ? "0x00" : "0x"));
  assert.deepEqual(await fetch(CODE), "00");
  tick(600_000);
  assert.deepEqual(await fetch(CODE), "");
  assert.deepEqual(await fetch(CODE), "");
  assert.deepEqual(avoided, [[], ["one"], ["one"]]);
});

test("values of a node that was found lying are read again", async (t) => {
  const { fetch, avoided, stated, tick } = withClock(t, () => "0x2a");
  await fetch(BALANCE);
  const before = stated.epoch(Date.now());
  stated.markLiar("node-one");
  assert.notEqual(stated.epoch(Date.now()), before, "executions drop the values that they have in memory");
  tick(10_000);
  await fetch(BALANCE);
  await fetch(BALANCE);
  assert.deepEqual(avoided, [[], []]);
});
