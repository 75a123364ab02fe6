import assert from "node:assert/strict";
import { test } from "node:test";
import { createContext } from "../support/builders/request.ts";
import { ANY, createSplit, range, readLogs } from "./askLogs.ts";
import { createFakeChain, fakeAddress, fakeHeads, fakeTopic, plainScan } from "./fakeChain.ts";
import { createFakeLogNode, nodeError } from "./fakeLogNode.ts";
import { createMemoryStore } from "./memoryStore.ts";

const chainOf = (blocks: number, every = 3) =>
  createFakeChain(
    Array.from({ length: blocks }, (_, at) =>
      at % every === 0 ? [{ address: fakeAddress(at % 5), topics: [fakeTopic(at % 7)], data: "0x1234" as const }] : [],
    ),
  );

test("a range above a node's limit is fetched in ranges of 15 segments, and then read from memory", async () => {
  const chain = chainOf(10_000);
  const node = createFakeLogNode({ chain });
  const split = createSplit([node]);
  const context = createContext({ heads: fakeHeads(chain, { finalized: 9_999 }) });
  const answer = await split.request(ANY, range(0, 9_999), context);
  assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(0, 9_999)));
  assert.deepEqual(answer.status, { fwd: "miss", detail: "0/79 segments", stored: true });
  assert.equal(node.logsRequests.length, Math.ceil(10_000 / 1_920));
  const calls = node.calls.length;

  const again = await split.request(ANY, range(0, 9_999), context);
  assert.deepEqual(await readLogs(again), plainScan(chain, ANY, range(0, 9_999)));
  assert.deepEqual(again.status, { hit: "memory" });
  assert.equal(node.calls.length, calls);
});

test("only the missing segments are fetched", async () => {
  const chain = chainOf(2_000);
  const node = createFakeLogNode({ chain });
  const split = createSplit([node]);
  const context = createContext({ heads: fakeHeads(chain, { finalized: 1_999 }) });
  await split.request(ANY, range(0, 895), context);
  const answer = await split.request(ANY, range(100, 1_151), context);
  assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(100, 1_151)));
  assert.deepEqual(answer.status, { fwd: "partial", detail: "7/9 segments", stored: true });
  assert.deepEqual(
    node.logsRequests.map(({ from, to }) => [from, to]),
    [
      [0, 895],
      [896, 1_151],
    ],
  );
});

test("a node of several machines that last reported an older head gets time to catch up", async () => {
  const chain = chainOf(400);
  let reads = 0;
  const node = createFakeLogNode({
    chain,
    get head() {
      return reads++ < 3 ? 398 : 399;
    },
  });
  const context = createContext({ heads: fakeHeads(chain, { finalized: 100 }) });
  const answer = await createSplit([node]).request(ANY, range(390, 399), context);
  assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(390, 399)));
  assert.ok(reads > 3);
});

test("a missing blockTimestamp is added", async () => {
  const chain = chainOf(1_000);
  const node = createFakeLogNode({ chain, timestamps: false });
  const context = createContext({ heads: fakeHeads(chain, { finalized: 990, ring: 100 }) });
  const answer = await createSplit([node]).request(ANY, range(0, 999), context);
  assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(0, 999)));
});

test("empty positions at the end of a filter count, even if a node ignores them, and have their own segments", async () => {
  const topics = [fakeTopic(0), fakeTopic(1), fakeTopic(2), fakeTopic(3)];
  const chain = createFakeChain(
    Array.from({ length: 300 }, (_, at) => [
      { address: fakeAddress(1), topics: topics.slice(0, at % 5), data: "0x22" as const },
    ]),
  );
  const context = createContext({ heads: fakeHeads(chain, { finalized: 200 }) });
  for (const ignoresWildcards of [false, true]) {
    const node = createFakeLogNode({ chain, ignoresWildcards });
    const split = createSplit([node]);
    for (let positions = 0; positions <= 4; positions++) {
      const filter = { addresses: [], topics: topics.slice(0, positions).map(() => []) };
      const answer = await split.request(filter, range(0, 299), context);
      assert.deepEqual(await readLogs(answer), plainScan(chain, filter, range(0, 299)), `${positions} positions`);
      assert.deepEqual(node.logsRequests.at(-1)?.filter, filter);
      const block = chain[7];
      const ofBlock = await split.request(filter, { blockHash: block?.hash ?? "0x" }, context);
      assert.deepEqual(await readLogs(ofBlock), plainScan(chain, filter, range(7, 7)));
    }
  }
});

test("recent blocks whose bloom matches, but whose logs have too few topics, share one second request", async () => {
  const transfer = fakeTopic(0);
  const fungible = { address: fakeAddress(1), topics: [transfer, fakeTopic(1), fakeTopic(2)], data: "0x22" as const };
  const unique = { ...fungible, topics: [...fungible.topics, fakeTopic(3)] };
  const chain = createFakeChain(Array.from({ length: 100 }, (_, at) => (at % 50 === 7 ? [unique] : [fungible])));
  const node = createFakeLogNode({ chain });
  const filter = { addresses: [], topics: [[transfer], [], [], []] };
  const context = createContext({ heads: fakeHeads(chain, { finalized: 0 }) });
  const answer = await createSplit([node]).request(filter, range(1, 99), context);
  assert.deepEqual(await readLogs(answer), plainScan(chain, filter, range(1, 99)));
  assert.equal(node.logsRequests.length, 2);

  // The first response of this node lacks logs at the end of the range.
  const lagging = createFakeLogNode({
    chain,
    change: (logs, { filter: { topics } }) => (topics.length === 4 ? logs.slice(0, 1) : logs),
  });
  const complete = await createSplit([lagging]).request(filter, range(1, 99), context);
  assert.deepEqual(await readLogs(complete), plainScan(chain, filter, range(1, 99)));
});

test("the key of a recent segment has its last block's hash, so that it is a miss after a reorganisation", async () => {
  const before = chainOf(400);
  const after = createFakeChain(
    Array.from({ length: 250 }, () => [{ address: fakeAddress(9), topics: [], data: "0x" as const }]),
    { base: before.slice(0, 150), fork: "other" },
  );
  const options = { chain: before };
  const node = createFakeLogNode(options);
  const store = createMemoryStore();
  const split = createSplit([node], { store });
  await split.request(ANY, range(0, 399), createContext({ heads: fakeHeads(before, { finalized: 100 }) }));
  assert.deepEqual([...store.entries.values()].map(({ retention }) => retention).sort(), [
    "final",
    "recent",
    "recent",
    "recent",
    "recent",
  ]);
  node.options.chain = after;
  const answer = await split.request(
    ANY,
    range(0, 399),
    createContext({ heads: fakeHeads(after, { finalized: 100 }) }),
  );
  assert.deepEqual(await readLogs(answer), plainScan(after, ANY, range(0, 399)));
});

test("logs of a node on another branch than the view's are never returned", async () => {
  const chain = chainOf(300);
  const other = createFakeChain(
    chain.slice(200).map(({ logs }) => logs),
    { base: chain.slice(0, 200), fork: "other" },
  );
  const lost = createFakeLogNode({ chain: other, name: "lost" });
  const good = createFakeLogNode({ chain, name: "good" });
  const context = createContext({ heads: fakeHeads(chain, { finalized: 100 }) });
  const answer = await createSplit([lost, good]).request(ANY, range(0, 299), context);
  assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(0, 299)));
  await assert.rejects(createSplit([lost]).request(ANY, range(0, 299), context), { code: -32603, status: 503 });
});

test("recent blocks with a matching bloom and no log are requested again by hash", async () => {
  const chain = chainOf(300);
  const node = createFakeLogNode({
    chain,
    change: (logs, { byHash }) => (byHash ? logs : logs.slice(0, Math.floor(logs.length / 2))),
  });
  const context = createContext({ heads: fakeHeads(chain, { finalized: 99 }) });
  const answer = await createSplit([node]).request(ANY, range(100, 299), context);
  assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(100, 299)));
});

test("a node that returns [] for pruned blocks is detected, and gets no further request for them", async () => {
  const chain = chainOf(20_000, 50);
  const pruned = createFakeLogNode({ chain, name: "pruned", prunedBelow: 15_000 });
  const archive = createFakeLogNode({ chain, name: "archive" });
  const context = createContext({ heads: fakeHeads(chain, { finalized: 19_900 }) });
  const answer = await createSplit([pruned, archive]).request(ANY, range(1, 12_000), context);
  assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(1, 12_000)));
  const alone = createFakeLogNode({ chain, name: "pruned", prunedBelow: 15_000 });
  await assert.rejects(createSplit([alone]).request(ANY, range(1, 12_000), context), /pruned|No node has/);
});

test("a block with too many logs is split by address, then by topic", async () => {
  const addresses = Array.from({ length: 8 }, (_, at) => fakeAddress(at));
  const topics = Array.from({ length: 4 }, (_, at) => fakeTopic(at));
  const logs = addresses.flatMap((address) =>
    topics.map((topic) => ({ address, topics: [topic], data: "0x" as const })),
  );
  const chain = createFakeChain([[], logs, []]);
  const node = createFakeLogNode({
    chain,
    onLogs: ({ results }) => (results > 2 ? nodeError("query returned more than 2 results", -32005) : undefined),
  });
  const filter = { addresses, topics: [topics] };
  const answer = await createSplit([node]).request(
    filter,
    range(0, 2),
    createContext({ heads: fakeHeads(chain, { finalized: 2 }) }),
  );
  assert.deepEqual(await readLogs(answer), plainScan(chain, filter, range(0, 2)));
  await assert.rejects(
    createSplit([node]).request(ANY, range(0, 2), createContext({ heads: fakeHeads(chain, { finalized: 2 }) })),
    {
      code: -32005,
      message: "query returned more than 2 results",
    },
  );
});

test("a response above its limit is an error before the first byte, and is aborted after it", async () => {
  const data = `0x${"ab".repeat(40_000)}` as const;
  const chain = createFakeChain(Array.from({ length: 300 }, () => [{ address: fakeAddress(1), topics: [], data }]));
  const node = createFakeLogNode({ chain });
  const context = createContext({ heads: fakeHeads(chain, { finalized: 299 }) });
  await assert.rejects(createSplit([node], { maxResponseBytes: 5_000_000 }).request(ANY, range(0, 299), context), {
    code: -32003,
  });
  const answer = await createSplit([node], { maxResponseBytes: 15_000_000 }).request(ANY, range(0, 299), context);
  await assert.rejects(readLogs(answer), { code: -32003 });
  const whole = await createSplit([node]).request(ANY, range(0, 299), context);
  assert.deepEqual(await readLogs(whole), plainScan(chain, ANY, range(0, 299)));
});

test("fetched segments are cached if the query fails", async () => {
  const chain = chainOf(6_000);
  const options = { broken: true };
  const node = createFakeLogNode({
    chain,
    onLogs: ({ to }) => (options.broken && to >= 4_000 ? nodeError("boom", -32000) : undefined),
  });
  const split = createSplit([node]);
  const context = createContext({ heads: fakeHeads(chain, { finalized: 5_999 }) });
  await assert.rejects(split.request(ANY, range(0, 5_999), context), { message: "boom" });
  options.broken = false;
  const answer = await split.request(ANY, range(0, 5_999), context);
  assert.equal(answer.status.fwd, "partial");
  assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(0, 5_999)));
});

test("logs by block hash: found, empty, unknown", async () => {
  const chain = chainOf(10);
  const node = createFakeLogNode({ chain });
  const split = createSplit([node]);
  const context = createContext({ heads: fakeHeads(chain, { finalized: 5 }) });
  for (const at of [3, 4]) {
    const blockHash = chain[at]?.hash ?? "0x";
    const answer = await split.request(ANY, { blockHash }, context);
    assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(at, at)));
    assert.deepEqual((await split.request(ANY, { blockHash }, context)).status, { hit: "memory" });
  }
  await assert.rejects(split.request(ANY, { blockHash: fakeTopic(1) }, context), {
    code: -32000,
    message: "unknown block",
  });
});

test("a fetch range that does not fit in memory is split, down to parts of a segment", async () => {
  const data = `0x${"ab".repeat(12_000)}` as const;
  const chain = createFakeChain(Array.from({ length: 1_920 }, () => [{ address: fakeAddress(1), topics: [], data }]));
  const node = createFakeLogNode({ chain, streams: true });
  const answer = await createSplit([node]).request(
    ANY,
    range(0, 1_919),
    createContext({ heads: fakeHeads(chain, { finalized: 1_919 }) }),
  );
  assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(0, 1_919)));
  const sizes = node.logsRequests.map(({ from, to }) => to - from + 1);
  assert.equal(sizes[0], 1_920);
  assert.ok(Math.max(...sizes.slice(1)) <= 128, `${sizes}`);
});

test("a query ends when its client disconnects, and its fetched segments are cached", async () => {
  const chain = chainOf(8_000);
  const client = new AbortController();
  const node = createFakeLogNode({
    chain,
    latencyMs: 1,
    onLogs: ({ from }) => {
      if (from >= 3_840) {
        client.abort(new Error("disconnected"));
      }
      return undefined;
    },
  });
  const split = createSplit([node], { spansPerNode: () => 1 });
  const heads = fakeHeads(chain, { finalized: 7_999 });
  const leaving = createContext({ heads, signal: client.signal });
  await assert.rejects(split.request(ANY, range(0, 7_999), leaving), { message: "disconnected" });
  const answer = await split.request(ANY, range(0, 7_999), createContext({ heads }));
  assert.equal(answer.status.fwd, "partial");
  assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(0, 7_999)));
});

test("a query without an available node times out", async () => {
  const chain = chainOf(500);
  const node = createFakeLogNode({ chain, available: () => false });
  const context = createContext({ heads: fakeHeads(chain, { finalized: 499 }), deadlineMs: performance.now() + 20 });
  await assert.rejects(createSplit([node]).request(ANY, range(0, 499), context), { code: -32603, status: 504 });
});

test("equal queries at the same time share one request, which continues if one of their clients disconnects", async () => {
  const chain = chainOf(500);
  const node = createFakeLogNode({ chain, latencyMs: 20 });
  const split = createSplit([node]);
  const heads = fakeHeads(chain, { finalized: 300 });
  const client = new AbortController();
  const first = split.request(ANY, range(490, 499), createContext({ heads, signal: client.signal }));
  const others = Array.from({ length: 20 }, () => split.request(ANY, range(490, 499), createContext({ heads })));
  setImmediate(() => client.abort(new Error("disconnected")));
  await assert.rejects(first, { message: "disconnected" });
  for (const answer of await Promise.all(others)) {
    assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(490, 499)));
  }
  assert.equal(node.logsRequests.length, 1);
});
