import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Context } from "../../src/core/context.ts";
import { NodeError } from "../../src/core/node.ts";
import type { RpcResponse } from "../../src/core/rpcSource.ts";
import { Hedge } from "../../src/nodes/hedge.ts";
import { createContext, createRequest, createResponse } from "../support/builders/request.ts";
import { silent } from "../support/builders/silent.ts";

/** A node whose next response is decided by the test. */
const createNode = () => {
  const waiting: {
    readonly context: Context;
    readonly resolve: (response: RpcResponse) => void;
    readonly reject: (error: Error) => void;
  }[] = [];
  const node = {
    available: true,
    lostMs: [] as number[],
    requests: 0,
    waiting,
    health: { recordLatencyAbove: (elapsedMs: number) => node.lostMs.push(elapsedMs) },
    request: (_request: unknown, context: Context) => {
      node.requests += 1;
      const { promise, resolve, reject } = Promise.withResolvers<RpcResponse>();
      waiting.push({ context, resolve, reject });
      context.signal.addEventListener("abort", () => reject(new Error("aborted")));
      return promise;
    },
  };
  return node;
};

const read = createRequest();
const answer = createResponse('"0x1"');

/** Reads that are hedged after `afterMs`. */
const start = (t: TestContext, afterMs: number | undefined) => {
  let nowMs = 1_000;
  t.mock.timers.enable({ apis: ["setTimeout"] });
  t.mock.method(performance, "now", () => nowMs);
  const advance = (byMs: number): void => {
    nowMs += byMs;
    t.mock.timers.tick(byMs);
  };
  const { metrics } = silent();
  const hedge = new Hedge("chain", afterMs === undefined ? undefined : { afterMs, maxShare: 0.05 }, metrics);
  const [slow, fast, third] = [createNode(), createNode(), createNode()];
  const nodes = { first: slow, hedge: fast, others: [fast, third] };
  const ask = (context = createContext(), startLate = () => true) => hedge.request(nodes, read, context, startLate);
  const hedges = async () => (await metrics.upstreamHedges.get()).values.reduce((sum, { value }) => sum + value, 0);
  return { slow, fast, third, ask, hedges, advance, now: () => nowMs };
};

test("the second node answers a slow read, also the first one, and the time of the first node counts as its latency", async (t) => {
  const { slow, fast, ask, hedges, advance } = start(t, 5);
  const response = ask();
  advance(5);
  fast.waiting.pop()?.resolve(answer);
  assert.equal(await response, answer);
  assert.equal(await hedges(), 1);
  assert.deepEqual([slow.lostMs, fast.lostMs], [[5], []]);
  assert.equal(slow.waiting.pop()?.context.signal.aborted, true);
});

test("the hedge that loses is aborted", async (t) => {
  const { slow, fast, ask, advance } = start(t, 5);
  const response = ask();
  advance(5);
  slow.waiting.pop()?.resolve(answer);
  await response;
  assert.equal(fast.waiting.pop()?.context.signal.aborted, true);
  assert.deepEqual([slow.lostMs.length, fast.lostMs.length], [0, 1]);
});

test("an empty response wins only if the other node has none either", async (t) => {
  const { slow, fast, ask, advance } = start(t, 5);
  const response = ask();
  advance(5);
  fast.waiting.pop()?.resolve(createResponse("null"));
  slow.waiting.pop()?.resolve(answer);
  assert.equal(await response, answer);
});

test("an empty response wins when half of the read's time is over", async (t) => {
  const empty = createResponse("null");
  for (const isHedged of [true, false]) {
    const { fast, third, ask, advance, now } = start(t, isHedged ? 5 : undefined);
    const response = ask(createContext({ deadlineMs: now() + 1_000 }));
    advance(5);
    if (isHedged) {
      fast.waiting.pop()?.resolve(empty);
      await new Promise(setImmediate);
    }
    advance(498);
    fast.waiting.pop()?.resolve(empty);
    assert.equal(await response, empty);
    assert.equal(third.requests, 0);
    t.mock.reset();
  }
});

test("after the hedges that a quiet time has saved, at most 5 % of the reads are sent twice", async (t) => {
  const { slow, fast, ask, hedges, advance } = start(t, 5);
  const askMany = async (reads: number, waitMs: number): Promise<void> => {
    const responses = Array.from({ length: reads }, () => ask());
    advance(waitMs);
    for (const { resolve } of [...slow.waiting.splice(0), ...fast.waiting.splice(0)]) {
      resolve(answer);
    }
    await Promise.all(responses);
  };
  await askMany(140, 5);
  assert.deepEqual([await hedges(), fast.requests], [100, 100]);
  // The 95th percentile of the node is 6 ms now.
  await askMany(50, 10);
  assert.deepEqual([await hedges(), fast.requests], [102, 102]);
});

test("a read goes to the next node when half of its time is over, and to the third after half of the rest", async (t) => {
  for (const afterMs of [undefined, 5_000]) {
    const { slow, fast, third, ask, hedges, advance, now } = start(t, afterMs);
    const response = ask(createContext({ deadlineMs: now() + 1_000 }));
    advance(499);
    assert.deepEqual([slow.requests, fast.requests], [1, 0]);
    advance(1);
    assert.deepEqual([fast.requests, third.requests], [1, 0]);
    advance(250);
    assert.equal(third.requests, 1);
    third.waiting.pop()?.resolve(answer);
    assert.equal(await response, answer);
    assert.equal(await hedges(), 0);
    t.mock.reset();
  }
});

test("a read whose hedge did not respond either goes to the third node", async (t) => {
  const { fast, third, ask, advance, now } = start(t, 100);
  const response = ask(createContext({ deadlineMs: now() + 1_000 }));
  advance(100);
  advance(450);
  assert.deepEqual([fast.requests, third.requests], [1, 1]);
  third.waiting.pop()?.resolve(answer);
  assert.equal(await response, answer);
});

test("no attempt begins after the deadline, nor one that the pool refuses", async (t) => {
  for (const isRefused of [false, true]) {
    const { slow, fast, third, ask, advance, now } = start(t, undefined);
    const context = createContext({ deadlineMs: now() + 1_000 });
    const response = ask(context, () => !isRefused);
    // The process stood still, unless the pool refuses.
    advance(isRefused ? 999 : 1_000);
    slow.waiting.pop()?.resolve(answer);
    await response;
    assert.deepEqual([fast.requests, third.requests], [0, 0]);
    t.mock.reset();
  }
});

test("an error that every node would return ends the read, although the first node does not respond", async (t) => {
  const { fast, ask, advance } = start(t, 5);
  const response = ask();
  advance(5);
  fast.waiting.pop()?.reject(new NodeError("revert", "node2", "execution reverted"));
  await assert.rejects(response, { kind: "revert" });
});

test("a client that disconnects ends both requests", async (t) => {
  const { slow, fast, ask, advance } = start(t, 5);
  const client = new AbortController();
  const response = ask(createContext({ signal: client.signal }));
  advance(5);
  client.abort();
  await assert.rejects(response);
  assert.ok([slow, fast].every(({ waiting }) => waiting.pop()?.context.signal.aborted));
  assert.deepEqual([slow.lostMs, fast.lostMs], [[], []]);
});
