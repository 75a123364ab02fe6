import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createContext } from "../support/builders/request.ts";
import { ANY, createSplit, range, readLogs } from "./askLogs.ts";
import { chainOf } from "./chainOf.ts";
import { createFakeChain, fakeAddress, fakeHeads, fakeTopic, plainScan } from "./fakeChain.ts";
import { createFakeLogNode, nodeError } from "./fakeLogNode.ts";
import { createMemoryStore } from "./memoryStore.ts";

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

test("a range whose first parts a node refused requests no others after the error", async () => {
  const chain = chainOf(640);
  const node = createFakeLogNode({ chain, onLogs: () => nodeError("block range is too wide") });
  const context = createContext({ heads: fakeHeads(chain, { finalized: 639 }) });
  await assert.rejects(createSplit([node]).request(ANY, range(0, 639), context), /block range is too wide/);
  const requested = node.logsRequests.length;
  for (let turn = 0; turn < 100; turn++) {
    await nextTurn();
  }
  assert.equal(node.logsRequests.length, requested);
});

test("logs by the hash of a block that a reorganisation replaced are returned", async () => {
  const chain = chainOf(300);
  const other = createFakeChain(
    chain.slice(200).map(({ logs }) => logs),
    { base: chain.slice(0, 200), fork: "other" },
  );
  const context = createContext({ heads: fakeHeads(chain, { finalized: 100 }) });
  const blockHash = other[252]?.hash ?? "0x";
  const answer = await createSplit([createFakeLogNode({ chain: other })]).request(ANY, { blockHash }, context);
  assert.deepEqual(await readLogs(answer), plainScan(other, ANY, range(252, 252)));
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
    maxLogRanges: 1,
    onLogs: ({ from }) => {
      if (from >= 3_840) {
        client.abort(new Error("disconnected"));
      }
      return undefined;
    },
  });
  const split = createSplit([node]);
  const heads = fakeHeads(chain, { finalized: 7_999 });
  const leaving = createContext({ heads, signal: client.signal });
  await assert.rejects(split.request(ANY, range(0, 7_999), leaving), { message: "disconnected" });
  const answer = await split.request(ANY, range(0, 7_999), createContext({ heads }));
  assert.equal(answer.status.fwd, "partial");
  assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(0, 7_999)));
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

test("the logs that a poll kept of a block are no answer by its hash", async () => {
  const chain = chainOf(500);
  const block = chain.find(({ number, logs }) => number > 400n && logs.length > 0);
  assert.ok(block);
  const { number, hash } = block;
  const split = createSplit([createFakeLogNode({ chain })]);
  split.keep(ANY, { number, hash }, Buffer.alloc(0));
  assert.deepEqual(await split.kept(ANY, hash), Buffer.alloc(0));
  const context = createContext({ heads: fakeHeads(chain, { finalized: 300 }) });
  const answer = await split.request(ANY, { blockHash: hash }, context);
  assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(Number(number), Number(number))));
});
