import assert from "node:assert/strict";
import { test } from "node:test";
import { cached } from "../../src/cache/cached.ts";
import { createKeyPrefix } from "../../src/cache/cacheKey.ts";
import { createMemoryStore } from "../../src/cache/memoryStore.ts";
import { createNegativeCache } from "../../src/cache/negativeCache.ts";
import type { RetentionClass } from "../../src/core/retention.ts";
import type { RpcRequest, RpcResponse, RpcSource } from "../../src/core/rpcSource.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { blockOf, createHeads, hashOf } from "../support/builders/heads.ts";
import { countingSource, createContext, createRequest, createResponse } from "../support/builders/request.ts";

const telemetry = createTelemetry({ level: "silent" });
const HEADS = createHeads({ latest: 100, finalized: 50 });
const TRANSACTION = hashOf(7, 7);

const wrap = (source: RpcSource) => {
  const absent = createNegativeCache();
  const memory = createMemoryStore({ maxBytes: 1 << 20, telemetry });
  const prefix = createKeyPrefix(1, hashOf(0));
  return { absent, memory, source: cached(source, { chain: "test", prefix, memory, absent, telemetry }) };
};

const atBlock = (retention: RetentionClass, number: number, fork = 0): RpcRequest =>
  createRequest({ retention, block: { number: BigInt(number), hash: hashOf(number, fork) } });

const byTransaction = (method = "eth_getTransactionReceipt"): RpcRequest =>
  createRequest({ retention: "byTransaction", method, params: [TRANSACTION] });

const textOf = ({ body }: RpcResponse): string =>
  body instanceof Uint8Array ? new TextDecoder().decode(body) : "stream";

for (const [retention, question] of [
  ["constant", createRequest({ retention: "constant" })],
  ["byHash", createRequest({ retention: "byHash" })],
  ["final", atBlock("final", 50)],
  ["recent", atBlock("recent", 51)],
  ["recentState", atBlock("recentState", 100)],
  ["head", createRequest({ retention: "head" })],
] as const) {
  test(`${retention}: the second question is answered from memory`, async () => {
    const node = countingSource(() => createResponse('"0x1"', { verified: true }));
    const { source } = wrap(node);
    const first = await source.request(question, createContext({ heads: HEADS }));
    const second = await source.request(question, createContext({ heads: HEADS }));
    assert.deepEqual(first.status, { fwd: "miss", stored: true });
    assert.deepEqual(second.status, { hit: "memory" });
    assert.equal(textOf(second), '"0x1"');
    assert.equal(node.requests, 1);
  });
}

const notKept = async (question: RpcRequest, answer: RpcResponse, heads = HEADS): Promise<RpcResponse> => {
  const node = countingSource(() => answer);
  const { source } = wrap(node);
  await source.request(question, createContext({ heads }));
  const second = await source.request(question, createContext({ heads }));
  assert.equal(node.requests, 2);
  return second;
};

test("an unverified answer is not kept as recent", async () => {
  await notKept(atBlock("recent", 51), createResponse("{}"));
  await notKept(atBlock("recentState", 51), createResponse("{}", { verified: false }));
});

test("an answer of a node that did not have the block is not kept, whatever its class", async () => {
  await notKept(atBlock("final", 1), createResponse('"0x"', { verified: false }));
  await notKept(createRequest({ retention: "byHash" }), createResponse("[]", { verified: false }));
  await notKept(byTransaction(), createResponse("null", { verified: false }));
});

test("what the ring does not know is not kept as recent", async () => {
  const question = createRequest({ retention: "recent", block: { number: 51n } });
  const { status } = await notKept(question, createResponse("{}", { verified: true }));
  assert.deepEqual(status, { fwd: "bypass" });
});

test("nothing is final above the finalized head, or where nobody says one", async () => {
  await notKept(atBlock("final", 51), createResponse("{}", { verified: true }));
  await notKept(atBlock("final", 1), createResponse("{}", { verified: true }), createHeads({ latest: 100 }));
});

test("a null is not kept, whatever its class", async () => {
  await notKept(createRequest({ retention: "byHash" }), createResponse("null"));
  await notKept(atBlock("final", 1), createResponse("null"));
  await notKept(atBlock("recent", 51), createResponse("null", { verified: true }));
  await notKept(createRequest({ retention: "head" }), createResponse("null"));
});

test("a write is neither kept nor called a miss", async () => {
  const { status } = await notKept(createRequest({ retention: "never", write: true }), createResponse('"0x1"'));
  assert.deepEqual(status, { fwd: "method" });
});

test("a stream is passed through", async () => {
  const body = (async function* () {})();
  const second = await notKept(createRequest({ retention: "byHash" }), { body, status: {} });
  assert.equal(second.body, body);
});

test("an error is passed on and not kept", async () => {
  const node = countingSource(() => Promise.reject(new Error("no")));
  const { source } = wrap(node);
  await assert.rejects(async () => source.request(atBlock("final", 1), createContext({ heads: HEADS })), /no/);
  await assert.rejects(async () => source.request(atBlock("final", 1), createContext({ heads: HEADS })), /no/);
  assert.equal(node.requests, 2);
});

test("fresh reads past the cache, and what it reads is kept", async () => {
  let answers = 0;
  const node = countingSource(() => createResponse(String(++answers)));
  const { source } = wrap(node);
  await source.request(atBlock("final", 1), createContext({ heads: HEADS }));
  const bypassCache = await source.request(atBlock("final", 1), createContext({ heads: HEADS, bypassCache: true }));
  assert.deepEqual(bypassCache.status, { fwd: "request", stored: true });
  assert.equal(textOf(await source.request(atBlock("final", 1), createContext({ heads: HEADS }))), "2");
});

test("head: the next head asks again", async () => {
  const node = countingSource(() => createResponse('"0x1"'));
  const { source } = wrap(node);
  await source.request(createRequest({ retention: "head" }), createContext({ heads: HEADS }));
  await source.request(createRequest({ retention: "head" }), createContext({ heads: createHeads({ latest: 101 }) }));
  assert.equal(node.requests, 2);
});

test("a reorganisation makes a recent answer unreachable, and its return reachable again", async () => {
  const node = countingSource(({ block }) => createResponse(JSON.stringify(block?.hash), { verified: true }));
  const { source } = wrap(node);
  for (const fork of [0, 1, 0, 1]) {
    const answer = await source.request(atBlock("recent", 60, fork), createContext({ heads: HEADS }));
    assert.equal(textOf(answer), JSON.stringify(hashOf(60, fork)));
  }
  assert.equal(node.requests, 2);
});

test("a transaction is kept with its block and hit while that block is canonical", async () => {
  const node = countingSource(() => createResponse("{}", { block: blockOf(60) }));
  const { source } = wrap(node);
  const ask = (heads = HEADS) => source.request(byTransaction(), createContext({ heads }));
  await ask();
  const second = await ask();
  assert.deepEqual([second.status.hit, second.block?.number], ["memory", 60n]);
  const reorganised = await ask(createHeads({ latest: 100, fork: 1, forkedAt: 60 }));
  assert.deepEqual(reorganised.status, { fwd: "miss", stored: false });
  assert.equal((await ask()).status.hit, "memory");
});

test("a transaction of a block that is out of the ring's reach is hit only where it was kept as final", async () => {
  const shortRing = createHeads({ latest: 100, finalized: 50, oldest: 90 });
  const kept = async (number: number) => {
    const node = countingSource(() => createResponse("{}", { block: blockOf(number) }));
    const { source } = wrap(node);
    await source.request(byTransaction(), createContext({ heads: shortRing }));
    return (await source.request(byTransaction(), createContext({ heads: shortRing }))).status.hit;
  };
  assert.equal(await kept(50), "memory");
  assert.equal(await kept(51), undefined);
  assert.equal(await kept(101), undefined);

  const node = countingSource(() => createResponse("{}", { block: blockOf(60) }));
  const { source } = wrap(node);
  await source.request(byTransaction(), createContext({ heads: HEADS }));
  const later = createContext({ heads: createHeads({ latest: 1000, finalized: 900, oldest: 500 }) });
  assert.equal((await source.request(byTransaction(), later)).status.fwd, "miss");
});

test("an absent transaction: answered for the same view, at most a second, and not after it was sent", async (t) => {
  let now = 1;
  t.mock.method(performance, "now", () => now);
  const node = countingSource(() => createResponse("null"));
  const { source, absent } = wrap(node);
  const ask = (heads = HEADS, method?: string) => source.request(byTransaction(method), createContext({ heads }));
  const asked = async (expected: number) => assert.equal(node.requests, expected);

  await ask();
  assert.deepEqual((await ask()).status, { hit: "memory" });
  await asked(1);
  await ask(HEADS, "eth_getTransactionByHash");
  await asked(2);
  now += 1_001;
  await ask();
  await asked(3);
  await ask(createHeads({ latest: 101 }));
  await asked(4);

  absent.expectTransactions([TRANSACTION.toUpperCase().replace("0X", "0x")]);
  assert.equal(absent.isExpected(TRANSACTION, HEADS), true);
  assert.deepEqual((await ask()).status, { fwd: "miss", stored: false });
  await ask();
  await asked(6);
  now += 59_000;
  assert.equal(absent.isExpected(TRANSACTION, HEADS), true);
  now += 120_000;
  assert.equal(absent.isExpected(TRANSACTION, HEADS), false);
  await ask();
  await ask();
  await asked(7);
});
