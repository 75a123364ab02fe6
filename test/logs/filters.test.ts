import assert from "node:assert/strict";
import { test } from "node:test";
import { parseLogQuery } from "../../src/chain/logFilter.ts";
import { createFilters } from "../../src/logs/filters.ts";
import { ANY, contextOf, createSplit, range, readLogs } from "./askLogs.ts";
import { createFakeChain, type FakeBlock, fakeAddress, fakeHeads, fakeTopic, plainScan } from "./fakeChain.ts";
import { createFakeLogNode } from "./fakeLogNode.ts";

const logs = Array.from({ length: 60 }, (_, at) =>
  at % 2 === 0 ? [{ address: fakeAddress(at % 3), topics: [fakeTopic(at)], data: "0x" as const }] : [],
);
const chain = createFakeChain(logs);
const fork = createFakeChain(logs.slice(48), { base: chain.slice(0, 48), fork: "other" });

const at = (blocks: readonly FakeBlock[], latest: number) => fakeHeads(blocks, { latest, finalized: 40 });
const query = (value: object = {}) => parseLogQuery(value, { maxAddresses: 10, maxTopics: 10 });

const create = (more: object = {}) => {
  const node = createFakeLogNode({ chain });
  return { node, filters: createFilters({ logs: createSplit([node]), ...more }) };
};

test("each log is told once, and those of a reorganised block again with removed: true", async () => {
  const { node, filters } = create();
  const id = filters.newLogFilter(query(), at(chain, 44));
  const ask = async (blocks: readonly FakeBlock[], latest: number) => {
    node.options.chain = blocks;
    return readLogs(await filters.changes(id, contextOf(at(blocks, latest))));
  };
  assert.deepEqual(await ask(chain, 44), []);
  assert.deepEqual(await ask(chain, 51), plainScan(chain, ANY, range(45, 51)));
  assert.deepEqual(await ask(chain, 51), []);
  const gone = plainScan(chain, ANY, range(48, 51)).map((log) => ({ ...log, removed: true }));
  assert.deepEqual(await ask(fork, 53), [...gone, ...plainScan(fork, ANY, range(48, 53))]);
  assert.deepEqual(await ask(fork, 59), plainScan(fork, ANY, range(54, 59)));
});

test("a filter's bounds", async () => {
  const { filters } = create();
  const id = filters.newLogFilter(
    query({ fromBlock: "0x14", toBlock: "0x30", address: fakeAddress(0) }),
    at(chain, 44),
  );
  const wanted = { addresses: [fakeAddress(0)], topics: [] };
  const context = contextOf(at(chain, 59));
  assert.deepEqual(await readLogs(await filters.changes(id, context)), plainScan(chain, wanted, range(45, 48)));
});

test("block filters tell the hashes of new blocks", async () => {
  const { filters } = create();
  const id = filters.newBlockFilter(at(chain, 50));
  const ask = async (blocks: readonly FakeBlock[], latest: number) =>
    readLogs(await filters.changes(id, contextOf(at(blocks, latest))));
  const hashes = (blocks: readonly FakeBlock[], from: number, to: number) =>
    blocks.slice(from, to + 1).map(({ hash }) => hash);
  assert.deepEqual(await ask(chain, 52), hashes(chain, 51, 52));
  assert.deepEqual(await ask(fork, 54), hashes(fork, 48, 54));
  assert.throws(() => filters.query(id), { code: -32000, message: "filter not found" });
});

test("filters expire, are uninstalled, and are unknown to another replica", async () => {
  let nowMs = 0;
  const { filters } = create({ now: () => nowMs, expiryMs: 1_000, replica: "1234abcd", maxFilters: 2 });
  const context = contextOf(at(chain, 50));
  const missing = { code: -32000, message: "filter not found" };
  const id = filters.newBlockFilter(at(chain, 50));
  assert.match(id, /^0x1234abcd[0-9a-f]{24}$/);
  await assert.rejects(create().filters.changes(id, context), missing);
  assert.equal(filters.uninstall(id), true);
  assert.equal(filters.uninstall(id), false);
  const other = filters.newLogFilter(query(), at(chain, 50));
  filters.newBlockFilter(at(chain, 50));
  assert.throws(() => filters.newBlockFilter(at(chain, 50)), { status: 503 });
  nowMs = 900;
  await filters.changes(other, context);
  nowMs = 1_800;
  await filters.changes(other, context);
  nowMs = 2_800;
  await assert.rejects(filters.changes(other, context), missing);
});

test("an answer that fails is told the next time", async () => {
  const { node, filters } = create();
  const id = filters.newLogFilter(query(), at(chain, 44));
  node.options.chain = fork;
  await assert.rejects(filters.changes(id, contextOf(at(chain, 50))));
  node.options.chain = chain;
  const answer = await filters.changes(id, contextOf(at(chain, 52)));
  assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(45, 52)));
});
