import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createRedisStore } from "../../src/cache/redisStore.ts";
import { NodeError } from "../../src/core/node.ts";
import type { RpcSource } from "../../src/core/rpcSource.ts";
import type { RunScript } from "../../src/core/runScript.ts";
import { parseLogQuery } from "../../src/ethereum/logFilter.ts";
import { parentHashOf } from "../../src/methods/parentHashOf.ts";
import { ADVANCE_FILTER, CREATE_FILTER } from "../../src/subscriptions/filterScripts.ts";
import type { FilterStore } from "../../src/subscriptions/filterStore.ts";
import { createLocalFilters } from "../../src/subscriptions/localFilters.ts";
import { createFilters } from "../../src/subscriptions/polledFilters.ts";
import { createSharedFilters } from "../../src/subscriptions/sharedFilters.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { ANY, createSplit, range, readLogs } from "../logs/askLogs.ts";
import { createFakeChain, type FakeBlock, fakeAddress, fakeHeads, fakeTopic, plainScan } from "../logs/fakeChain.ts";
import { createFakeLogNode } from "../logs/fakeLogNode.ts";
import { createContext, createResponse } from "../support/builders/request.ts";
import { until } from "../support/clients/until.ts";
import { startRedis } from "../support/servers/redis.ts";

const logs = Array.from({ length: 60 }, (_, at) =>
  at % 2 === 0 ? [{ address: fakeAddress(at % 3), topics: [fakeTopic(at)], data: "0x" as const }] : [],
);
const chain = createFakeChain(logs);
const fork = createFakeChain(logs.slice(48), { base: chain.slice(0, 48), fork: "other" });

const at = (blocks: readonly FakeBlock[], latest: number) =>
  createContext({ heads: fakeHeads(blocks, { latest, finalized: 40 }), clientId: "client" });
const query = (value: object = {}) => parseLogQuery(value, { maxAddresses: 10, maxTopics: 10 });
const missing = { code: -32000, message: "filter not found" };
const REPLICA = "1234abcd";

const MAX_BYTES = 10_000_000;

const localStore = async (_: TestContext, maxPerClient = 100, maxBytesPerClient = MAX_BYTES): Promise<FilterStore> =>
  createLocalFilters({ maxPerClient, maxBytesPerClient });

const sharedStore = async (t: TestContext, maxPerClient = 100, maxBytesPerClient = MAX_BYTES): Promise<FilterStore> => {
  const { url } = await startRedis(t);
  const telemetry = createTelemetry({ level: "silent" });
  const redis = createRedisStore({ url, timeoutMs: 1_000, telemetry });
  t.after(() => redis.close());
  const store = createSharedFilters({ maxPerClient, maxBytesPerClient, run: redis.run });
  await until(
    () =>
      store.read("0x").then(
        () => true,
        () => false,
      ),
    "Redis is connected",
  );
  return store;
};

const isResolved = (promise: Promise<unknown>): Promise<boolean> =>
  promise.then(
    () => true,
    () => false,
  );

/** One replica in front of a separate node. */
const createReplica = (stores: { readonly local?: FilterStore; readonly shared?: FilterStore }) => {
  const node = createFakeLogNode({ chain });
  const { local = createLocalFilters({ maxPerClient: 100, maxBytesPerClient: MAX_BYTES }), shared } = stores;
  const parentHashOf = async (hash: string) => [...chain, ...fork].find((block) => block.hash === hash)?.parentHash;
  const filters = createFilters({ logs: createSplit([node]), parentHashOf, local, shared, replica: REPLICA });
  return { node, filters };
};

for (const [name, createStore] of [
  ["in this process", localStore],
  ["in Redis", sharedStore],
] as const) {
  const create = async (t: TestContext, ...limits: readonly number[]) => {
    const store = await createStore(t, ...limits);
    return createReplica(name === "in Redis" ? { shared: store } : { local: store });
  };

  test(`${name}: a filter of a short block ring reports all blocks of a reorganisation below it`, async (t) => {
    const { node, filters } = await create(t);
    const short = createContext({ heads: fakeHeads(chain, { latest: 51, ring: 2 }), clientId: "client" });
    const logFilter = await filters.newLogFilter(query(), short);
    const blockFilter = await filters.newBlockFilter(short);
    node.options.chain = fork;
    assert.deepEqual(
      await readLogs(await filters.changes(blockFilter, at(fork, 52))),
      fork.slice(48, 53).map(({ hash }) => hash),
    );
    assert.deepEqual(
      await readLogs(await filters.changes(logFilter, at(fork, 52))),
      plainScan(fork, ANY, range(48, 52)),
    );
  });

  test(`${name}: each log is reported once, and those of a reorganised block again with removed: true`, async (t) => {
    const { node, filters } = await create(t);
    const id = await filters.newLogFilter(query(), at(chain, 44));
    const ask = async (blocks: readonly FakeBlock[], latest: number) => {
      node.options.chain = blocks;
      return readLogs(await filters.changes(id, at(blocks, latest)));
    };
    assert.deepEqual(await ask(chain, 44), []);
    assert.deepEqual(await ask(chain, 51), plainScan(chain, ANY, range(45, 51)));
    assert.deepEqual(await ask(chain, 51), []);
    const gone = plainScan(chain, ANY, range(48, 51)).map((log) => ({ ...log, removed: true }));
    assert.deepEqual(await ask(fork, 53), [...gone, ...plainScan(fork, ANY, range(48, 53))]);
    assert.deepEqual(await ask(fork, 59), plainScan(fork, ANY, range(54, 59)));
  });

  test(`${name}: a filter's bounds`, async (t) => {
    const { filters } = await create(t);
    const bounds = { fromBlock: "0x14", toBlock: "0x30", address: fakeAddress(0) };
    const id = await filters.newLogFilter(query(bounds), at(chain, 44));
    const wanted = { addresses: [fakeAddress(0)], topics: [] };
    assert.deepEqual(await filters.query(id), query(bounds));
    assert.deepEqual(await readLogs(await filters.changes(id, at(chain, 59))), plainScan(chain, wanted, range(45, 48)));
  });

  test(`${name}: block filters report the hashes of new blocks`, async (t) => {
    const { filters } = await create(t);
    const id = await filters.newBlockFilter(at(chain, 50));
    const ask = async (blocks: readonly FakeBlock[], latest: number) =>
      readLogs(await filters.changes(id, at(blocks, latest)));
    const hashes = (blocks: readonly FakeBlock[], from: number, to: number) =>
      blocks.slice(from, to + 1).map(({ hash }) => hash);
    assert.deepEqual(await ask(chain, 52), hashes(chain, 51, 52));
    assert.deepEqual(await ask(fork, 54), hashes(fork, 48, 54));
    await assert.rejects(filters.query(id), missing);
  });

  test(`${name}: filters are uninstalled, and limited by client`, async (t) => {
    const { filters } = await create(t, 2);
    const id = await filters.newBlockFilter(at(chain, 50));
    assert.match(id, /^0x1234abcd[0-9a-f]{24}$/);
    await filters.newLogFilter(query(), at(chain, 50));
    await assert.rejects(filters.newBlockFilter(at(chain, 50)), { status: 503 });
    await filters.newBlockFilter({ ...at(chain, 50), clientId: "another client" });
    assert.equal(await filters.uninstall(id), true);
    assert.equal(await filters.uninstall(id), false);
    await assert.rejects(filters.changes(id, at(chain, 50)), missing);
    await until(
      () =>
        filters.newBlockFilter(at(chain, 50)).then(
          () => true,
          () => false,
        ),
      "there is room again",
    );
  });

  test(`${name}: filters of one client are limited in bytes, and block filters weigh nothing`, async (t) => {
    // A log filter counts its text and 64 KiB.
    const { filters } = await create(t, 100, 3 * 65_536 + 1_000);
    const add = (clientId = "client") => filters.newLogFilter(query(), { ...at(chain, 50), clientId });
    const [id] = [await add(), await add(), await add()];
    await assert.rejects(add(), { status: 503 });
    await filters.newBlockFilter(at(chain, 50));
    await add("another client");
    // A poll does not change the weight.
    await filters.changes(id, at(chain, 51));
    await assert.rejects(add(), { status: 503 });
    await filters.uninstall(id);
    await until(
      () =>
        add().then(
          () => true,
          () => false,
        ),
      "there is room again",
    );
    const large = query({ address: Array.from({ length: 10 }, (_, index) => fakeAddress(index)) });
    await assert.rejects(filters.newLogFilter(large, at(chain, 50)), { status: 503 });
  });

  test(`${name}: events of a failed poll are returned by the next one`, async (t) => {
    const { node, filters } = await create(t);
    const id = await filters.newLogFilter(query(), at(chain, 44));
    node.options.chain = fork;
    await assert.rejects(filters.changes(id, at(chain, 50)));
    node.options.chain = chain;
    const answer = await filters.changes(id, at(chain, 52));
    assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(45, 52)));
  });
}

/** Answers reads of blocks by hash. The first error of the list is thrown instead, once. */
const createBlockReads = (errors: NodeError[]): RpcSource => ({
  request: async ({ params }) => {
    const error = errors.shift();
    if (error !== undefined) {
      throw error;
    }
    const block = [...chain, ...fork].find(({ hash }) => hash === (params as readonly unknown[])[0]);
    return createResponse(JSON.stringify(block ? { hash: block.hash, parentHash: block.parentHash } : null));
  },
});

for (const kind of ["timeout", "rateLimited", "unreachable", "otherBranch", "unverified"] as const) {
  test(`a poll fails if a replaced block cannot be read now (${kind}), and the next poll has all events`, async () => {
    const node = createFakeLogNode({ chain });
    const reads = createBlockReads([new NodeError(kind, "node", `the node fails: ${kind}`)]);
    const local = createLocalFilters({ maxPerClient: 100, maxBytesPerClient: MAX_BYTES });
    const filters = createFilters({ logs: createSplit([node]), parentHashOf: parentHashOf(reads), local });
    const short = createContext({ heads: fakeHeads(chain, { latest: 51, ring: 2 }), clientId: "client" });
    const id = await filters.newBlockFilter(short);
    await assert.rejects(filters.changes(id, at(fork, 52)), { message: `the node fails: ${kind}` });
    assert.deepEqual(
      await readLogs(await filters.changes(id, at(fork, 52))),
      fork.slice(48, 53).map(({ hash }) => hash),
    );
  });
}

test("a replaced block that no node has ends the search for the blocks below it", async () => {
  const node = createFakeLogNode({ chain });
  const unknown = new NodeError("missingData", "node", "header not found");
  for (const errors of [[unknown], undefined]) {
    const reads = errors ? createBlockReads(errors) : { request: async () => createResponse("null") };
    const local = createLocalFilters({ maxPerClient: 100, maxBytesPerClient: MAX_BYTES });
    const filters = createFilters({ logs: createSplit([node]), parentHashOf: parentHashOf(reads), local });
    const short = createContext({ heads: fakeHeads(chain, { latest: 51, ring: 2 }), clientId: "client" });
    const id = await filters.newBlockFilter(short);
    const hashes = await readLogs(await filters.changes(id, at(fork, 52)));
    assert.ok(Array.isArray(hashes));
    assert.equal(hashes.at(-1), fork[52]?.hash);
  }
});

test("in this process: filters expire, and another replica does not know them", async () => {
  let nowMs = 0;
  const local = createLocalFilters({
    maxPerClient: 9,
    maxBytesPerClient: MAX_BYTES,
    maxFilters: 2,
    expiryMs: 1_000,
    now: () => nowMs,
  });
  const { filters } = createReplica({ local });
  const context = at(chain, 50);
  const id = await filters.newLogFilter(query(), context);
  await assert.rejects(createReplica({}).filters.changes(id, context), missing);
  await filters.newBlockFilter(context);
  await assert.rejects(filters.newBlockFilter(context), { status: 503 });
  nowMs = 900;
  await filters.changes(id, context);
  nowMs = 1_800;
  await filters.changes(id, context);
  nowMs = 2_800;
  await assert.rejects(filters.changes(id, context), missing);
});

test("concurrent polls of one filter at two replicas return each log once, also across a reorganisation", async (t) => {
  const shared = await sharedStore(t);
  const replicas = [createReplica({ shared }), createReplica({ shared })];
  const [first] = replicas;
  assert.ok(first);
  const id = await first.filters.newLogFilter(query(), at(chain, 44));
  const seen: object[] = [];
  const pollAll = async (blocks: readonly FakeBlock[], latest: number) => {
    const polls = replicas.flatMap(({ node, filters }, index) => {
      node.options.chain = blocks;
      // At every second block, one of the replicas is behind.
      return [0, 1].map(() => filters.changes(id, at(blocks, latest - (latest % 2) * index)));
    });
    for (const answer of await Promise.all(polls)) {
      seen.push(...((await readLogs(answer)) as object[]));
    }
  };
  for (let latest = 45; latest <= 51; latest++) {
    await pollAll(chain, latest);
  }
  for (let latest = 53; latest <= 59; latest++) {
    await pollAll(fork, latest);
  }
  const gone = plainScan(chain, ANY, range(48, 51)).map((log) => ({ ...log, removed: true }));
  const expected = [...plainScan(chain, ANY, range(45, 51)), ...gone, ...plainScan(fork, ANY, range(48, 59))];
  const sorted = (list: readonly object[]) => list.map((log) => JSON.stringify(log)).sort();
  assert.deepEqual(sorted(seen), sorted(expected));
});

test("an advance that Redis executes after its poll failed has no effect, so that the next poll has the events", async (t) => {
  const { url } = await startRedis(t);
  const redis = createRedisStore({ url, timeoutMs: 1_000, telemetry: createTelemetry({ level: "silent" }) });
  t.after(() => redis.close());
  const late: (() => Promise<unknown>)[] = [];
  let isPaused = false;
  const run: RunScript = (lua, key, args) => {
    if (!isPaused || lua !== ADVANCE_FILTER) {
      return redis.run(lua, key, args);
    }
    late.push(() => redis.run(lua, key, args));
    return Promise.reject(new Error("no reply in time"));
  };
  const store = createSharedFilters({ maxPerClient: 100, maxBytesPerClient: MAX_BYTES, run });
  await until(() => isResolved(store.read("0x")), "Redis is connected");
  const { filters } = createReplica({ shared: store });
  const id = await filters.newLogFilter(query(), at(chain, 44));
  isPaused = true;
  await assert.rejects(filters.changes(id, at(chain, 51)), { status: 503 });
  isPaused = false;
  assert.ok(late.length > 0);
  for (const execute of late) {
    await execute();
  }
  assert.deepEqual(await readLogs(await filters.changes(id, at(chain, 51))), plainScan(chain, ANY, range(45, 51)));
});

test("a filter that Redis creates after its request failed has another id than the local one", async (t) => {
  const { url } = await startRedis(t);
  const redis = createRedisStore({ url, timeoutMs: 1_000, telemetry: createTelemetry({ level: "silent" }) });
  t.after(() => redis.close());
  const run: RunScript = async (lua, key, args) => {
    const reply = await redis.run(lua, key, args);
    return lua === CREATE_FILTER ? Promise.reject(new Error("the reply is lost")) : reply;
  };
  const shared = createSharedFilters({ maxPerClient: 100, maxBytesPerClient: MAX_BYTES, run });
  await until(() => isResolved(shared.read("0x")), "Redis is connected");
  const { filters } = createReplica({ shared });
  const id = await filters.newBlockFilter(at(chain, 44));
  assert.equal(await shared.read(id), undefined);
  await assert.rejects(createReplica({ shared }).filters.changes(id, at(chain, 51)), missing);
});

test("an advance without a reply counts if Redis has executed it", async (t) => {
  const { url } = await startRedis(t);
  const redis = createRedisStore({ url, timeoutMs: 1_000, telemetry: createTelemetry({ level: "silent" }) });
  t.after(() => redis.close());
  const run: RunScript = async (lua, key, args) => {
    const reply = await redis.run(lua, key, args);
    return lua === ADVANCE_FILTER ? Promise.reject(new Error("the reply is lost")) : reply;
  };
  const store = createSharedFilters({ maxPerClient: 100, maxBytesPerClient: MAX_BYTES, run });
  await until(() => isResolved(store.read("0x")), "Redis is connected");
  const { filters } = createReplica({ shared: store });
  const id = await filters.newLogFilter(query(), at(chain, 44));
  assert.deepEqual(await readLogs(await filters.changes(id, at(chain, 51))), plainScan(chain, ANY, range(45, 51)));
  assert.deepEqual(await readLogs(await filters.changes(id, at(chain, 51))), []);
});

test("removed logs that were not stored are read by block hash", async (t) => {
  const data = `0x${"ab".repeat(300_000)}` as const;
  const large = createFakeChain(logs.map((list) => list.map((log) => ({ ...log, data }))));
  const other = createFakeChain(logs.slice(48), { base: large.slice(0, 48), fork: "other" });
  for (const stores of [{}, { shared: await sharedStore(t) }]) {
    const { node, filters } = createReplica(stores);
    node.options.chain = large;
    const id = await filters.newLogFilter(query(), at(large, 44));
    await filters.changes(id, at(large, 52));
    // The node still has the old blocks by their hashes.
    node.options.chain = [...other, ...large.slice(48)];
    node.options.head = 59;
    const isOld = (log: unknown) => large.slice(48).some(({ hash }) => JSON.stringify(log).includes(hash));
    node.options.change = (list, { byHash }) => (byHash ? list : list.filter((log) => !isOld(log)));
    const gone = plainScan(large, ANY, range(48, 52)).map((log) => ({ ...log, removed: true }));
    assert.deepEqual(await readLogs(await filters.changes(id, at(other, 53))), [
      ...gone,
      ...plainScan(other, ANY, range(48, 53)),
    ]);
  }
});
