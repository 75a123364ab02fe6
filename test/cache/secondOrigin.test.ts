import assert from "node:assert/strict";
import { test } from "node:test";
import { cached } from "../../src/cache/cached.ts";
import { MemoryStore } from "../../src/cache/memoryStore.ts";
import { NegativeCache } from "../../src/cache/negativeCache.ts";
import { secondOrigin } from "../../src/cache/secondOrigin.ts";
import type { Context } from "../../src/core/context.ts";
import type { RetentionClass } from "../../src/core/retention.ts";
import type { RpcRequest, RpcResponse } from "../../src/core/rpcSource.ts";
import { unavailable } from "../../src/jsonrpc/rpcError.ts";
import { blockOf, createHeads, hashOf } from "../support/builders/heads.ts";
import { createContext, createRequest, createResponse } from "../support/builders/request.ts";
import { silent } from "../support/builders/silent.ts";
import { createStated } from "../support/builders/statedValues.ts";

const HEADS = createHeads({ latest: 100, finalized: 50 });
const NUMBER = 7;
const TRANSACTION = hashOf(NUMBER, 7);
const LIFE_MS = 600_000;
const NODES = ["one", "two", "three"].map((origin, index) => ({
  name: `node${index + 1}`,
  origin,
  priority: 0,
  available: true,
}));

const receiptOf = (fields: object = {}): string =>
  JSON.stringify({
    ...{ type: "0x2", status: "0x1", cumulativeGasUsed: "0x5208", gasUsed: "0x5208", logs: [] },
    ...{ logsBloom: `0x${"00".repeat(256)}`, blockNumber: `0x${NUMBER}`, blockHash: hashOf(NUMBER) },
    ...{ transactionHash: TRANSACTION, transactionIndex: "0x0", from: "0xAB", to: "0xcd", contractAddress: null },
    ...fields,
  });
const RIGHT = receiptOf();
const FAILED = receiptOf({ status: "0x0" });

const rankOf = (origin: string, avoided: readonly string[] = []): number => avoided.indexOf(origin);

/** A chain whose nodes state these receipts, and have no receipts of blocks. Nodes of avoided origins come last. */
const createChain = (states: readonly (string | undefined)[]) => {
  const asked: string[] = [];
  const waitsMs: number[] = [];
  const disagreed: string[] = [];
  const request = async (
    { avoidedOrigins, excludedOrigins = [] }: RpcRequest,
    { deadlineMs }: Context,
  ): Promise<RpcResponse> => {
    waitsMs.push(deadlineMs - performance.now());
    const ranked = NODES.slice(0, states.length)
      .map((node, index) => ({ ...node, state: states[index] }))
      .toSorted((a, b) => rankOf(a.origin, avoidedOrigins) - rankOf(b.origin, avoidedOrigins));
    const node = ranked.find(({ state, origin }) => state !== undefined && !excludedOrigins.includes(origin));
    if (node?.state === undefined) {
      throw unavailable("no node has responded yet");
    }
    asked.push(node.name);
    const isFound = node.state !== "null";
    return createResponse(node.state, { node: node.name, ...(isFound && { block: blockOf(NUMBER) }) });
  };
  const nodes = NODES.slice(0, states.length);
  const stated = createStated({ nodes });
  const negativeCache = new NegativeCache();
  const compared = secondOrigin(
    { request },
    {
      ...{
        agree: 1,
        negativeCache,
        receiptsOf: async () => undefined,
        disagreements: { report: ({ method }) => void disagreed.push(method) },
      },
      nodes: nodes.map((node) => ({
        ...node,
        send: () => Promise.reject(new Error("not sent")),
        recordWrongAnswer: () => assert.fail("nothing proves that a node is wrong"),
      })),
      verifier: { level: "full", hasReceipts: () => false, verify: () => ({}) },
    },
  );
  const memory = new MemoryStore(1 << 20, silent());
  const source = cached(compared, {
    chain: "test",
    keys: { prefix: "" },
    memory,
    stores: [],
    negativeCache,
    stated,
    telemetry: silent(),
  });
  const read = async (
    method = "eth_getTransactionReceipt",
    retention: RetentionClass = "byTransaction",
  ): Promise<string> => {
    const params = [TRANSACTION];
    const context = createContext({ heads: HEADS });
    const { body } = await source.request(createRequest({ retention, method, params }), context);
    return body instanceof Uint8Array ? new TextDecoder().decode(body) : "stream";
  };
  return { read, asked, waitsMs, disagreed };
};

test("receipts that differ only in fields outside the protocol are the same, and are cached for good", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const { read, asked } = createChain([RIGHT, receiptOf({ from: "0xab", blockTimestamp: "0x1" })]);
  assert.equal(await read(), RIGHT);
  t.mock.timers.tick(LIFE_MS + 1);
  assert.equal(await read(), RIGHT);
  assert.deepEqual(asked, ["node1", "node2"]);
});

test("a receipt that one origin alone has is cached for ten minutes, and then asked of another", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const states = [FAILED, "null", undefined];
  const { read, asked } = createChain(states);
  assert.equal(await read(), FAILED);
  assert.equal(await read(), FAILED);
  assert.deepEqual(asked, ["node1", "node2"]);
  states[2] = RIGHT;
  states[1] = RIGHT;
  t.mock.timers.tick(LIFE_MS + 1);
  assert.equal(await read(), RIGHT);
});

for (const [what, method] of [
  ["receipt", "eth_getTransactionReceipt"],
  ["trace", "debug_traceTransaction"],
] as const) {
  test(`a ${what} that was served does not become null because a second node has pruned it`, async (t) => {
    t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
    const { read } = createChain([RIGHT, "null"]);
    assert.equal(await read(method), RIGHT);
    t.mock.timers.tick(LIFE_MS + 1);
    assert.equal(await read(method), RIGHT);
    assert.equal(await read(method), RIGHT);
  });
}

test("a receipt that one of three origins has invented is null after ten minutes", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const states = [FAILED, "null", undefined];
  const { read } = createChain(states);
  assert.equal(await read(), FAILED);
  states[2] = "null";
  t.mock.timers.tick(LIFE_MS + 1);
  assert.equal(await read(), "null");
});

test("a disagreement on state is reported, and none on what nodes may choose", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  for (const method of ["eth_getBalance", "eth_gasPrice"]) {
    const { read, disagreed } = createChain(['"0x1"', '"0x2"']);
    await read(method, "constant");
    t.mock.timers.tick(LIFE_MS + 1);
    assert.equal(await read(method, "constant"), '"0x1"', "the preferred origin answers");
    assert.deepEqual(disagreed, method === "eth_getBalance" ? [method] : []);
  }
});

test("a null of two origins is not asked again until the next head", async () => {
  const { read, asked } = createChain(["null", "null"]);
  assert.equal(await read("debug_traceTransaction"), "null");
  assert.equal(await read("debug_traceTransaction"), "null");
  assert.ok(asked.length <= 3, asked.join());
});

test("a null of the preferred origin is not replaced by what one other origin states of an old block", async () => {
  const { read } = createChain(["null", FAILED]);
  assert.equal(await read(), "null");
});

test("of two receipts that differ, a third origin decides", async () => {
  const { read, asked } = createChain([FAILED, RIGHT, RIGHT]);
  assert.equal(await read(), RIGHT);
  assert.deepEqual(asked, ["node1", "node2", "node3"]);
});

test("null is served if two origins state it", async () => {
  const { read, asked } = createChain(["null", "null", RIGHT]);
  assert.equal(await read("debug_traceTransaction"), "null");
  assert.deepEqual(asked, ["node1", "node2"]);
});

test("a second origin is awaited for 1.5 s", async () => {
  const { read, waitsMs } = createChain([RIGHT, RIGHT]);
  await read();
  const [first = 0, second = 0] = waitsMs;
  assert.ok(first > 1_500 && second <= 1_500, waitsMs.join());
});

test("with one origin, nothing else is asked", async () => {
  const { read, asked } = createChain([FAILED]);
  assert.equal(await read(), FAILED);
  assert.deepEqual(asked, ["node1"]);
});
