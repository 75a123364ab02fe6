import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { MemoryStore } from "../../../src/cache/memoryStore.ts";
import { StateStore, type StoredState } from "../../../src/cache/tieredStore.ts";
import type { StateFetch } from "../../../src/core/stateFetch.ts";
import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import type { StateOfNodesOptions } from "../../../src/state/fetch/stateOfNodes.ts";
import { createNodeState } from "../../support/builders/nodeState.ts";
import { silent } from "../../support/builders/silent.ts";
import { createStated } from "../../support/builders/statedValues.ts";

const hash = `0x${"ab".repeat(32)}` as const;
const ADDRESS: Address = `0x${"11".repeat(20)}`;
const SLOT: Hash = `0x${"1".padStart(64, "0")}`;
const ACCOUNT = { accounts: [ADDRESS], slots: [], blockHashes: [] };
const ONE_SLOT = { accounts: [], slots: [[ADDRESS, SLOT] as const], blockHashes: [] };
const BOTH = { ...ACCOUNT, slots: ONE_SLOT.slots };
const HINT = { calls: [{ to: ADDRESS }], stateOverrides: undefined };
const SIGNAL = new AbortController().signal;

/** A replica, which has nothing in memory. */
const createReplica = (fetch: StateFetch, options: Pick<StateOfNodesOptions, "finalStore" | "beginFetch">) =>
  createNodeState({ fetch, maxBytes: 1_000_000, ...options });

const create = () => {
  const stored = new Map<string, StoredState>();
  const batches: string[][] = [];
  const known: number[] = [];
  const rig = { batches, known, stored, hasSlots: false };
  const fetch: StateFetch = async (calls) => {
    batches.push(calls.map(({ method }) => method));
    const outcomes = calls.map(({ method }) => {
      const isMissing = method.startsWith("debug_") || (method === "eth_getStorageAt" && !rig.hasSlots);
      return isMissing ? new Error("down") : method === "eth_createAccessList" ? { accessList: [] } : "0x2a";
    });
    return { outcomes, node: "node1" };
  };
  const store = {
    originOf: () => "one",
    get: async (name: string) => stored.get(name),
    set: (name: string, value: Uint8Array) => void stored.set(name, { value, isServed: true, origin: "one" }),
  };
  const read = (number: bigint) =>
    createReplica(fetch, {
      finalStore: (block) => (block.number <= 10n ? store : undefined),
      beginFetch:
        () =>
        ({ values }) =>
          known.push(values.size),
    })
      .at({ number, hash }, HINT)
      .read(BOTH, SIGNAL);
  return Object.assign(rig, { read });
};

const SINGLE = ["eth_getBalance", "eth_getTransactionCount", "eth_getCode", "eth_getStorageAt"];
const PREDICTED = ["debug_traceCall", "eth_createAccessList"];

test("values of final blocks are stored, errors and predictions are not", async () => {
  const rig = create();
  await assert.rejects(rig.read(10n), /down/);
  rig.hasSlots = true;
  const { accounts, codes, slots } = await rig.read(10n);
  assert.deepEqual(rig.batches, [
    [...SINGLE, ...PREDICTED],
    ["eth_getStorageAt", ...PREDICTED],
  ]);
  assert.deepEqual([accounts[0]?.[1]?.balance, accounts[0]?.[1]?.nonce], [42n, 42n]);
  assert.deepEqual([codes[0]?.[1], slots[0]?.[2]], [Uint8Array.of(42), Uint8Array.of(42)]);
});

test("only what nodes returned becomes known: another node may have stated what is stored", async () => {
  const rig = create();
  rig.hasSlots = true;
  await rig.read(10n);
  await rig.read(10n);
  assert.deepEqual([rig.known, rig.batches[1]], [[4, 0], PREDICTED]);
});

test("no value of a block that is not final is stored", async () => {
  const rig = create();
  rig.hasSlots = true;
  await rig.read(11n);
  await rig.read(11n);
  assert.equal(rig.batches[1]?.length, 6);
  assert.equal(rig.stored.size, 0);
});

/** Nodes of two origins with a clock: `avoided` lists the origins that each fetch avoided. */
const withClock = (t: TestContext, statementOf: (origin: string, method: string) => string) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_000_000 });
  const nodes = ["one", "two"].map((origin) => ({ name: `node-${origin}`, origin, priority: 0 }));
  const stated = createStated({ nodes });
  const memory = new MemoryStore(1 << 20, silent());
  const avoided: (readonly string[])[] = [];
  const fetch: StateFetch = async (calls, avoidedOrigins = []) => {
    avoided.push(avoidedOrigins);
    const node = nodes.find(({ origin }) => !avoidedOrigins.includes(origin)) ?? assert.fail();
    return { outcomes: calls.map(({ method }) => statementOf(node.origin, method)), node: node.name };
  };
  const finalStore = new StateStore({ keys: { prefix: "test:" }, memory, stores: [] }, stated);
  const at = () => createReplica(fetch, { finalStore: () => finalStore }).at({ number: 10n, hash });
  const readSlot = async () => (await at().read(ONE_SLOT, SIGNAL)).slots[0]?.[2];
  const readCode = async () => (await at().read(ACCOUNT, SIGNAL)).codes[0]?.[1];
  return { readSlot, readCode, avoided, stated, tick: (ms: number) => t.mock.timers.tick(ms) };
};

test("a value of one origin is read from another after ten minutes, and then cached for days", async (t) => {
  const { readSlot, avoided, tick } = withClock(t, (origin) => (origin === "one" ? "0x2a" : "0x02A"));
  assert.deepEqual(await readSlot(), Uint8Array.of(42));
  tick(600_000 - 1);
  await readSlot();
  assert.deepEqual(avoided, [[]]);
  tick(1);
  await readSlot();
  assert.deepEqual(avoided, [[], ["one"]]);
  tick(6 * 86_400_000);
  await readSlot();
  assert.equal(avoided.length, 2);
});

test("of two different values the newer one is cached for ten minutes", async (t) => {
  const codeOf = (origin: string) => (origin === "one" ? "0x00" : "0x");
  const { readCode, avoided, tick } = withClock(t, (origin, method) =>
    method === "eth_getCode" ? codeOf(origin) : "0x1",
  );
  assert.deepEqual(await readCode(), Uint8Array.of(0));
  tick(600_000);
  assert.equal(await readCode(), undefined);
  assert.equal(await readCode(), undefined);
  assert.deepEqual(avoided, [[], ["one"]]);
  tick(600_000);
  assert.deepEqual(await readCode(), Uint8Array.of(0));
  assert.deepEqual(avoided.at(-1), ["two"]);
});
