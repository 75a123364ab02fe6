import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type FilterStore, formatQuery } from "../../src/subscriptions/filterStore.ts";
import { LocalFilters } from "../../src/subscriptions/localFilters.ts";
import { ANY, range, readLogs } from "../logs/askLogs.ts";
import { createFakeChain, type FakeBlock, fakeAddress, fakeHeads, plainScan } from "../logs/fakeChain.ts";
import { createContext } from "../support/builders/request.ts";
import { until } from "../support/clients/until.ts";
import { at, chain, createReplica, fork, MAX_BYTES, missing, query } from "./filterReplica.ts";
import { startRedisFilters } from "./redisFilters.ts";

const localStore = async (_: TestContext, maxPerClient = 100, maxBytesPerClient = MAX_BYTES): Promise<FilterStore> =>
  new LocalFilters({ maxPerClient, maxBytesPerClient });

const redisStore = (t: TestContext, maxPerClient?: number, maxBytesPerClient?: number): Promise<FilterStore> =>
  startRedisFilters(t, { maxPerClient, maxBytesPerClient });

for (const [name, createStore] of [
  ["in this process", localStore],
  ["in Redis", redisStore],
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

  test(`${name}: a filter that is older than the block ring reports every block and log`, async (t) => {
    const { node, filters, reads } = await create(t);
    const logFilter = await filters.newLogFilter(query(), at(chain, 44));
    const blockFilter = await filters.newBlockFilter(at(chain, 44));
    const ringOf = (blocks: readonly FakeBlock[], latest: number, finalized: number) => {
      node.options.chain = blocks;
      return createContext({ heads: fakeHeads(blocks, { latest, finalized, ring: 2 }), clientId: "client" });
    };
    const hashes = (blocks: readonly FakeBlock[], from: number, to: number) =>
      blocks.slice(from, to + 1).map(({ hash }) => hash);
    const begun = ringOf(chain, 52, 40);
    assert.deepEqual(await readLogs(await filters.changes(blockFilter, begun)), hashes(chain, 45, 52));
    assert.equal(reads.length, 7);
    assert.deepEqual(await readLogs(await filters.changes(logFilter, begun)), plainScan(chain, ANY, range(45, 52)));
    assert.equal(reads.length, 8, "a log filter needs its last block alone");
    // The block ring began again after a reorganisation of reported blocks.
    const replaced = ringOf(fork, 58, 40);
    assert.deepEqual(await readLogs(await filters.changes(blockFilter, replaced)), hashes(fork, 48, 58));
    // Logs of blocks that the ring never had are not cached, and the node has forgotten them.
    await assert.rejects(filters.changes(logFilter, replaced), missing);
    const read = reads.length;
    assert.deepEqual(await readLogs(await filters.changes(blockFilter, ringOf(fork, 59, 59))), hashes(fork, 59, 59));
    assert.equal(reads.length, read, "nothing is read for a block ring that has the last reported block");
  });

  test(`${name}: a filter is removed if its changes cannot be complete`, async (t) => {
    const long = createFakeChain(Array.from({ length: 400 }, () => []));
    const { node, filters } = await create(t);
    node.options.chain = long;
    const start = createContext({ heads: fakeHeads(long, { latest: 44 }), clientId: "client" });
    const blockFilter = await filters.newBlockFilter(start);
    const logFilter = await filters.newLogFilter(query(), start);
    const begun = createContext({ heads: fakeHeads(long, { latest: 390, ring: 2 }), clientId: "client" });
    await assert.rejects(filters.changes(blockFilter, begun), missing);
    assert.equal(await filters.uninstall(blockFilter), false);
    assert.deepEqual(await readLogs(await filters.changes(logFilter, begun)), []);
    const other = createFakeChain(
      Array.from({ length: 800 }, () => []),
      { fork: "other" },
    );
    node.options.chain = other;
    const reset = createContext({ heads: fakeHeads(other, { latest: 790, ring: 2 }), clientId: "client" });
    await assert.rejects(filters.changes(logFilter, reset), missing);
    assert.equal(await filters.uninstall(logFilter), false);
  });

  test(`${name}: logs from before the filter are never removed, and those that it reported in their place are`, async (t) => {
    const { node, filters } = await create(t);
    const id = await filters.newLogFilter(query(), at(chain, 52));
    const ask = async (blocks: readonly FakeBlock[], latest: number) => {
      node.options.chain = blocks;
      return readLogs(await filters.changes(id, at(blocks, latest)));
    };
    assert.deepEqual(await ask(fork, 53), plainScan(fork, ANY, range(48, 53)));
    const gone = plainScan(fork, ANY, range(48, 53)).map((log) => ({ ...log, removed: true }));
    assert.deepEqual(await ask(chain, 54), [...gone, ...plainScan(chain, ANY, range(48, 54))]);
  });

  test(`${name}: a poll in a view that is older than the last one reports nothing, and changes nothing`, async (t) => {
    const { node, filters } = await create(t);
    const [logFilter, blockFilter] = [
      await filters.newLogFilter(query(), at(chain, 44)),
      await filters.newBlockFilter(at(chain, 44)),
    ];
    for (const id of [logFilter, blockFilter]) {
      node.options.chain = chain;
      await filters.changes(id, at(chain, 52));
      assert.deepEqual(await readLogs(await filters.changes(id, at(chain, 50))), []);
      assert.notDeepEqual(await readLogs(await filters.changes(id, at(chain, 54))), []);
    }
  });

  test(`${name}: a reorganisation to a lower head is reported at once, and the blocks above it later`, async (t) => {
    const { node, filters } = await create(t);
    const [logFilter, blockFilter] = [
      await filters.newLogFilter(query(), at(chain, 44)),
      await filters.newBlockFilter(at(chain, 44)),
    ];
    for (const id of [logFilter, blockFilter]) {
      await filters.changes(id, at(chain, 55));
    }
    node.options.chain = fork;
    const gone = plainScan(chain, ANY, range(48, 55)).map((log) => ({ ...log, removed: true }));
    const added = plainScan(fork, ANY, range(48, 52));
    assert.deepEqual(await readLogs(await filters.changes(logFilter, at(fork, 52))), [...gone, ...added]);
    const hashes = fork.slice(48, 54).map(({ hash }) => hash);
    assert.deepEqual(await readLogs(await filters.changes(blockFilter, at(fork, 52))), hashes.slice(0, 5));
    assert.deepEqual(
      await readLogs(await filters.changes(logFilter, at(fork, 53))),
      plainScan(fork, ANY, range(53, 53)),
    );
    assert.deepEqual(await readLogs(await filters.changes(blockFilter, at(fork, 53))), hashes.slice(5));
  });

  test(`${name}: a poll in a lower view reports nothing while a block above it is forgotten`, async (t) => {
    const { filters, cache } = await create(t);
    const foreign = createFakeChain(
      Array.from({ length: 60 }, () => []),
      { fork: "foreign" },
    );
    const id = await filters.newBlockFilter(at(foreign, 55));
    cache.entries.clear();
    assert.deepEqual(await readLogs(await filters.changes(id, at(chain, 52))), []);
    await assert.rejects(filters.changes(id, at(chain, 55)), missing);
  });

  test(`${name}: a filter's bounds`, async (t) => {
    const { filters } = await create(t);
    const bounds = { fromBlock: "0x14", toBlock: "0x30", address: fakeAddress(0) };
    const id = await filters.newLogFilter(query(bounds), at(chain, 44));
    const wanted = { addresses: [fakeAddress(0)], topics: [] };
    assert.deepEqual(await filters.query(id), query(bounds));
    assert.deepEqual(await readLogs(await filters.changes(id, at(chain, 59))), plainScan(chain, wanted, range(45, 48)));
  });

  test(`${name}: filters are uninstalled, and limited by client`, async (t) => {
    const { filters } = await create(t, 2);
    const id = await filters.newBlockFilter(at(chain, 50));
    assert.match(id, /^0x1234abcd[0-9a-f]{24}$/);
    await assert.rejects(filters.query(id), missing, "a block filter has no logs");
    await filters.newLogFilter(query(), at(chain, 50));
    await assert.rejects(filters.newBlockFilter(at(chain, 50)), { status: 503 });
    await filters.newBlockFilter(at(chain, 50, "another client"));
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
    const weight = formatQuery(query()).length;
    const { filters } = await create(t, 100, 3.5 * weight);
    const add = (clientId = "client") => filters.newLogFilter(query(), at(chain, 50, clientId));
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
}

test("in this process: filters expire, and another replica does not know them", async () => {
  let nowMs = 0;
  const local = new LocalFilters({
    maxPerClient: 9,
    maxBytesPerClient: MAX_BYTES,
    maxFilters: 2,
    expiryMs: 1_000,
    nowMs: () => nowMs,
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

test("removed logs that the cache has lost are read by block hash, and the filter ends if no node has them", async (t) => {
  for (const stores of [{}, { shared: await startRedisFilters(t) }]) {
    for (const isForgotten of [false, true]) {
      const { node, filters, cache } = createReplica(stores);
      const id = await filters.newLogFilter(query(), at(chain, 44));
      await filters.changes(id, at(chain, 52));
      cache.entries.clear();
      // The node may still have the old blocks by their hashes.
      node.options.chain = isForgotten ? fork : [...fork, ...chain.slice(48)];
      node.options.head = 59;
      const isOld = (log: unknown) => chain.slice(48).some(({ hash }) => JSON.stringify(log).includes(hash));
      node.options.change = (list, { byHash }) => (byHash ? list : list.filter((log) => !isOld(log)));
      if (isForgotten) {
        await assert.rejects(filters.changes(id, at(fork, 53)), missing);
        assert.equal(await filters.uninstall(id), false);
        continue;
      }
      const gone = plainScan(chain, ANY, range(48, 52)).map((log) => ({ ...log, removed: true }));
      assert.deepEqual(await readLogs(await filters.changes(id, at(fork, 53))), [
        ...gone,
        ...plainScan(fork, ANY, range(48, 53)),
      ]);
    }
  }
});

test("nothing is cached for blocks whose bloom excludes the filter, and their replacement removes nothing", async () => {
  const { node, filters, cache } = createReplica({});
  const id = await filters.newLogFilter(query({ address: fakeAddress(99) }), at(chain, 44));
  assert.deepEqual(await readLogs(await filters.changes(id, at(chain, 52))), []);
  const ofBlocks = [...cache.entries.keys()].filter((key) => /^logs:\w+:0x/.test(key));
  assert.deepEqual(ofBlocks, []);
  node.options.chain = fork;
  assert.deepEqual(await readLogs(await filters.changes(id, at(fork, 53))), []);
});
