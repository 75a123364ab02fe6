import assert from "node:assert/strict";
import { test } from "node:test";
import type { Context } from "../../src/core/context.ts";
import type { RpcResponse } from "../../src/core/rpcSource.ts";
import { Hedge } from "../../src/nodes/hedge.ts";
import { RetryBudget } from "../../src/nodes/retryBudget.ts";
import { createContext, createRequest, createResponse } from "../support/builders/request.ts";
import { silent } from "../support/builders/silent.ts";

/** A node whose next response is decided by the test. */
const createNode = () => {
  const waiting: { readonly context: Context; readonly resolve: (response: RpcResponse) => void }[] = [];
  const asked: (() => void)[] = [];
  const node = {
    available: true,
    lostMs: [] as number[],
    requests: 0,
    waiting,
    health: { recordLatencyAbove: (elapsedMs: number) => node.lostMs.push(elapsedMs) },
    nextRequest: () => new Promise<void>((resolve) => asked.push(resolve)),
    request: (_request: unknown, context: Context) => {
      node.requests += 1;
      const { promise, resolve, reject } = Promise.withResolvers<RpcResponse>();
      waiting.push({ context, resolve });
      context.signal.addEventListener("abort", () => reject(new Error("aborted")));
      asked.shift()?.();
      return promise;
    },
  };
  return node;
};

const read = createRequest();
const answer = createResponse('"0x1"');

/** A hedge that may send `saved` reads twice. */
const start = async (afterMs: number, saved = 1) => {
  const { metrics } = silent();
  const hedge = new Hedge("chain", { afterMs, maxShare: 0.05 }, new RetryBudget(), metrics);
  const [slow, fast] = [createNode(), createNode()];
  const ask = (context = createContext()) => hedge.request(slow, fast, read, context);
  for (let at = 0; at < saved * 20; at += 1) {
    const asked = slow.nextRequest();
    const response = ask();
    await asked;
    slow.waiting.pop()?.resolve(answer);
    await response;
  }
  const hedges = async () => (await metrics.upstreamHedges.get()).values.reduce((sum, { value }) => sum + value, 0);
  return { slow, fast, ask, hedges };
};

test("the second node answers a slow read, and the time of the first counts as its latency", async () => {
  const { slow, fast, ask, hedges } = await start(1);
  const hedged = fast.nextRequest();
  const response = ask();
  await hedged;
  fast.waiting.pop()?.resolve(answer);
  assert.equal(await response, answer);
  assert.equal(await hedges(), 1);
  assert.deepEqual([slow.lostMs.length, fast.lostMs.length], [1, 0]);
  assert.ok((slow.lostMs[0] ?? 0) >= 1);
  assert.equal(slow.waiting.pop()?.context.signal.aborted, true);
});

test("the hedge that loses is aborted", async () => {
  const { slow, fast, ask } = await start(1);
  const hedged = fast.nextRequest();
  const response = ask();
  await hedged;
  slow.waiting.pop()?.resolve(answer);
  await response;
  assert.equal(fast.waiting.pop()?.context.signal.aborted, true);
  assert.deepEqual([slow.lostMs.length, fast.lostMs.length], [0, 1]);
});

test("an empty response wins only if the other node has none either", async () => {
  const { slow, fast, ask } = await start(1);
  const hedged = fast.nextRequest();
  const response = ask();
  await hedged;
  fast.waiting.pop()?.resolve(createResponse("null"));
  slow.waiting.pop()?.resolve(answer);
  assert.equal(await response, answer);
});

test("at most 5 % of the reads are sent twice", async () => {
  const { slow, fast, ask, hedges } = await start(0, 2);
  const hedged = [fast.nextRequest(), fast.nextRequest()];
  const responses = Array.from({ length: 15 }, () => ask());
  await Promise.all(hedged);
  for (const { resolve } of [...slow.waiting, ...fast.waiting]) {
    resolve(answer);
  }
  await Promise.all(responses);
  assert.deepEqual([await hedges(), fast.requests], [2, 2]);
});

test("a client that disconnects ends both requests", async () => {
  const { slow, fast, ask } = await start(1);
  const client = new AbortController();
  const hedged = fast.nextRequest();
  const response = ask(createContext({ signal: client.signal }));
  await hedged;
  client.abort();
  await assert.rejects(response);
  assert.ok([slow, fast].every(({ waiting }) => waiting.pop()?.context.signal.aborted));
  assert.deepEqual([slow.lostMs, fast.lostMs], [[], []]);
});
