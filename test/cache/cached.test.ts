import assert from "node:assert/strict";
import { test } from "node:test";
import { cached } from "../../src/cache/cached.ts";
import { createKeyPrefix } from "../../src/cache/cacheEntry.ts";
import { MemoryStore } from "../../src/cache/memoryStore.ts";
import { NegativeCache } from "../../src/cache/negativeCache.ts";
import type { RetentionClass } from "../../src/core/retention.ts";
import type { RpcRequest, RpcResponse, RpcSource } from "../../src/core/rpcSource.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { blockOf, createHeads, hashOf } from "../support/builders/heads.ts";
import { countingSource, createContext, createRequest, createResponse } from "../support/builders/request.ts";
import { createStated } from "../support/builders/statedValues.ts";

const telemetry = createTelemetry({ level: "silent" });
const HEADS = createHeads({ latest: 100, finalized: 50 });
const TRANSACTION = hashOf(7, 7);

const wrap = (source: RpcSource) => {
  const negativeCache = new NegativeCache();
  const memory = new MemoryStore(1 << 20, telemetry);
  const prefix = createKeyPrefix("chain", 1, hashOf(0));
  return {
    negativeCache,
    memory,
    source: cached(source, {
      chain: "test",
      keys: { prefix },
      memory,
      stores: [],
      negativeCache,
      stated: createStated(),
      telemetry,
    }),
  };
};

const atBlock = (retention: RetentionClass, number: number, fork = 0): RpcRequest =>
  createRequest({ retention, block: { number: BigInt(number), hash: hashOf(number, fork) } });

const byTransaction = (method = "eth_getTransactionReceipt"): RpcRequest =>
  createRequest({ retention: "byTransaction", method, params: [TRANSACTION] });

const textOf = ({ body }: RpcResponse): string =>
  body instanceof Uint8Array ? new TextDecoder().decode(body) : "stream";

for (const [retention, request] of [
  ["constant", createRequest({ retention: "constant" })],
  ["byHash", createRequest({ retention: "byHash" })],
  ["final", atBlock("final", 50)],
  ["recent", atBlock("recent", 51)],
  ["recentState", atBlock("recentState", 100)],
  ["head", createRequest({ retention: "head" })],
] as const) {
  test(`${retention}: the second response is from memory`, async () => {
    const node = countingSource(() => createResponse('"0x1"', { verified: true }));
    const { source } = wrap(node);
    const first = await source.request(request, createContext({ heads: HEADS }));
    const second = await source.request(request, createContext({ heads: HEADS }));
    assert.deepEqual(first.status, { fwd: "miss", stored: true });
    assert.deepEqual(second.status, { hit: "memory" });
    assert.equal(textOf(second), '"0x1"');
    assert.equal(node.requests, 1);
  });
}

test("memory keeps no response of a call that is sent for the first time", async () => {
  const node = countingSource(() => createResponse('"0x1"', { verified: true }));
  const { source, memory } = wrap(node);
  const request = atBlock("recentState", 100);
  const responses: RpcResponse[] = [];
  for (const isFirst of [true, false, false]) {
    responses.push(await source.request({ ...request, isFirst }, createContext({ heads: HEADS })));
  }
  assert.deepEqual(
    responses.map(({ status: { hit, stored } }) => ({ hit, stored })),
    [
      { hit: undefined, stored: undefined },
      { hit: undefined, stored: true },
      { hit: "memory", stored: undefined },
    ],
  );
  assert.deepEqual([node.requests, memory.entries], [2, 1]);
});

const assertNotCached = async (request: RpcRequest, response: RpcResponse, heads = HEADS): Promise<RpcResponse> => {
  const node = countingSource(() => response);
  const { source } = wrap(node);
  await source.request(request, createContext({ heads }));
  const second = await source.request(request, createContext({ heads }));
  assert.equal(node.requests, 2);
  return second;
};

test("an unverified response is not cached as recent", async () => {
  await assertNotCached(atBlock("recent", 51), createResponse("{}"));
  await assertNotCached(atBlock("recentState", 51), createResponse("{}", { verified: false }));
});

test("a response of a node without the block is not cached in any class", async () => {
  await assertNotCached(atBlock("final", 1), createResponse('"0x"', { verified: false }));
  await assertNotCached(createRequest({ retention: "byHash" }), createResponse("[]", { verified: false }));
  await assertNotCached(byTransaction(), createResponse("null", { verified: false }));
});

test("a block outside the ring is not cached as recent", async () => {
  const request = createRequest({ retention: "recent", block: { number: 51n } });
  const { status } = await assertNotCached(request, createResponse("{}", { verified: true }));
  assert.deepEqual(status, { fwd: "bypass" });
});

test("no response above the finalized head, or without one, is cached as final", async () => {
  await assertNotCached(atBlock("final", 51), createResponse("{}", { verified: true }));
  await assertNotCached(atBlock("final", 1), createResponse("{}", { verified: true }), createHeads({ latest: 100 }));
});

test("a null is not cached in any class", async () => {
  await assertNotCached(createRequest({ retention: "byHash" }), createResponse("null"));
  await assertNotCached(atBlock("final", 1), createResponse("null"));
  await assertNotCached(atBlock("recent", 51), createResponse("null", { verified: true }));
  await assertNotCached(createRequest({ retention: "head" }), createResponse("null"));
});

test("a write is neither cached nor counted as a miss", async () => {
  const { status } = await assertNotCached(createRequest({ retention: "never", write: true }), createResponse('"0x1"'));
  assert.deepEqual(status, { fwd: "method" });
});

test("a streamed response is returned unchanged", async () => {
  const body = (async function* () {})();
  const second = await assertNotCached(createRequest({ retention: "byHash" }), { body, status: {} });
  assert.equal(second.body, body);
});

test("an error is thrown and not cached", async () => {
  const node = countingSource(() => Promise.reject(new Error("no")));
  const { source } = wrap(node);
  await assert.rejects(async () => source.request(atBlock("final", 1), createContext({ heads: HEADS })), /no/);
  await assert.rejects(async () => source.request(atBlock("final", 1), createContext({ heads: HEADS })), /no/);
  assert.equal(node.requests, 2);
});

test("a read that bypasses the cache stores its response", async () => {
  let responses = 0;
  const node = countingSource(() => createResponse(String(++responses)));
  const { source } = wrap(node);
  await source.request(atBlock("final", 1), createContext({ heads: HEADS }));
  const bypassCache = await source.request(atBlock("final", 1), createContext({ heads: HEADS, bypassCache: true }));
  assert.deepEqual(bypassCache.status, { fwd: "request", stored: true });
  assert.equal(textOf(await source.request(atBlock("final", 1), createContext({ heads: HEADS }))), "2");
});

test("a response of class head is requested again at the next head", async () => {
  const node = countingSource(() => createResponse('"0x1"'));
  const { source } = wrap(node);
  await source.request(createRequest({ retention: "head" }), createContext({ heads: HEADS }));
  await source.request(createRequest({ retention: "head" }), createContext({ heads: createHeads({ latest: 101 }) }));
  assert.equal(node.requests, 2);
});

test("a transaction is cached with its block, and is a hit while that block is canonical", async () => {
  const node = countingSource(() => createResponse("{}", { block: blockOf(60) }));
  const { source } = wrap(node);
  const request = (heads = HEADS) => source.request(byTransaction(), createContext({ heads }));
  await request();
  const second = await request();
  assert.deepEqual([second.status.hit, second.block?.number], ["memory", 60n]);
  const reorganised = await request(createHeads({ latest: 100, fork: 1, forkedAt: 60 }));
  assert.deepEqual(reorganised.status, { fwd: "miss", stored: false });
  assert.equal((await request()).status.hit, "memory");
});

test("a transaction of a block outside the ring is a hit only if it was cached as final", async () => {
  const shortRing = createHeads({ latest: 100, finalized: 50, oldest: 90 });
  const hitOf = async (number: number) => {
    const node = countingSource(() => createResponse("{}", { block: blockOf(number) }));
    const { source } = wrap(node);
    await source.request(byTransaction(), createContext({ heads: shortRing }));
    return (await source.request(byTransaction(), createContext({ heads: shortRing }))).status.hit;
  };
  assert.equal(await hitOf(50), "memory");
  assert.equal(await hitOf(51), undefined);
  assert.equal(await hitOf(101), undefined);

  const node = countingSource(() => createResponse("{}", { block: blockOf(60) }));
  const { source } = wrap(node);
  await source.request(byTransaction(), createContext({ heads: HEADS }));
  const later = createContext({ heads: createHeads({ latest: 1000, finalized: 900, oldest: 500 }) });
  assert.equal((await source.request(byTransaction(), later)).status.fwd, "miss");
});

test("a null of an older view, which arrives late, ends no other", async (t) => {
  t.mock.method(performance, "now", () => 10_000);
  const node = countingSource(() => createResponse("null"));
  const { source } = wrap(node);
  const request = (latest: number) =>
    source.request(byTransaction(), createContext({ heads: createHeads({ latest }) }));
  await request(101);
  await request(100);
  assert.deepEqual((await request(101)).status, { hit: "memory" });
});

test("the null of a transaction is cached for one view, up to a second, until the transaction is submitted", async (t) => {
  let now = 1;
  t.mock.method(performance, "now", () => now);
  const node = countingSource(() => createResponse("null"));
  const { source, negativeCache } = wrap(node);
  const request = (heads = HEADS, method?: string) => source.request(byTransaction(method), createContext({ heads }));
  const assertRequests = async (expected: number) => assert.equal(node.requests, expected);

  await request();
  assert.deepEqual((await request()).status, { hit: "memory" });
  await assertRequests(1);
  await request(HEADS, "eth_getTransactionByHash");
  await assertRequests(2);
  now += 1_001;
  await request();
  await assertRequests(3);
  await request(createHeads({ latest: 101 }));
  await assertRequests(4);

  negativeCache.expectTransactions([TRANSACTION.toUpperCase().replace("0X", "0x")]);
  assert.equal(negativeCache.isExpected(TRANSACTION, HEADS), true);
  assert.deepEqual((await request()).status, { fwd: "miss", stored: false });
  await request();
  await assertRequests(6);
  now += 59_000;
  assert.equal(negativeCache.isExpected(TRANSACTION, HEADS), true);
  now += 120_000;
  assert.equal(negativeCache.isExpected(TRANSACTION, HEADS), false);
  await request();
  await request();
  await assertRequests(7);
});
