import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createProgress } from "../../src/core/context.ts";
import { LazySignal } from "../../src/core/lazySignal.ts";
import { NodeError } from "../../src/core/node.ts";
import { createCall } from "../../src/jsonrpc/call.ts";
import { CallBatcher } from "../../src/nodes/callBatcher.ts";
import { SentCall } from "../../src/nodes/exchange.ts";
import { NodeHealth } from "../../src/nodes/nodeHealth.ts";
import { BatchLimit, CallRate, RequestLimit } from "../../src/nodes/sendLimits.ts";
import { silent } from "../support/builders/silent.ts";

const CONNECTION = {};
const METRIC_LABELS = { chain: "chain", node: "node" };

interface Options {
  readonly maxWaiting?: number;
  readonly requests?: number;
  readonly requestsPerSecond?: number;
}

/** A batcher whose HTTP requests are recorded, and answered when the test says. */
const createRecorded = ({ maxWaiting = 1_000, requests: limit = 10, requestsPerSecond }: Options = {}) => {
  const requests: string[][] = [];
  const refused: string[] = [];
  const state = { begin: () => undefined, ended: () => undefined, pauseMs: 0 };
  const answers: (() => void)[] = [];
  const aborted: string[][] = [];
  const record = (methods: string[], answer: () => void) => {
    requests.push(methods);
    answers.push(answer);
    return { abort: () => aborted.push(methods) };
  };
  const batcher = new CallBatcher({
    endpoint: {
      call: ({ call }, onOutcome) => record([call.method], () => onOutcome(Buffer.from("1"))),
      batch: (calls, onOutcomes) =>
        record(
          calls.map(({ call }) => call.method),
          () => onOutcomes(calls.map(() => Buffer.from("1"))),
        ),
    },
    batchLimit: new BatchLimit(50),
    requestLimit: new RequestLimit(limit),
    state,
    rate: new CallRate(requestsPerSecond),
    maxWaiting,
    onRefused: (call) => {
      refused.push(call.call.method);
      call.complete(new NodeError("overloaded", "node", "too many"));
    },
    health: new NodeHealth(METRIC_LABELS, silent().metrics, {
      methodLabel: () => "other",
      unitsOf: () => 0,
    }),
  });
  /** Answers the oldest HTTP request in flight. */
  const answer = async () => {
    answers.shift()?.();
    await nextTurn();
    await nextTurn();
  };
  return { batcher, requests, refused, aborted, state, answer };
};

const reach = (client?: string) => {
  const { signal } = new AbortController();
  const caller = client === undefined ? undefined : { clientId: client, connection: CONNECTION };
  const progress = client === undefined ? undefined : createProgress();
  return { signal, lazySignal: new LazySignal(0), deadlineMs: Number.POSITIVE_INFINITY, caller, progress };
};

/** `client`: undefined for a call of forebay's own. */
const callOf = (method: string, client?: string): SentCall =>
  new SentCall(createCall(method, []), reach(client), true, () => undefined);

/** Adds one call in this turn of the event loop, and one in the next. */
const addInTwoTurns = async (batcher: CallBatcher): Promise<void> => {
  batcher.add(callOf("first"));
  await nextTurn();
  batcher.add(callOf("second"));
  await nextTurn();
  await nextTurn();
  await nextTurn();
};

test("a node without requests in flight gets the calls of each turn at once", async () => {
  const { batcher, requests } = createRecorded();
  await addInTwoTurns(batcher);
  assert.deepEqual(requests, [["first"], ["second"]]);
});

test("a node with two requests in flight gets the calls of two turns in one request", async () => {
  const { batcher, requests } = createRecorded();
  batcher.sendAlone(callOf("one"));
  batcher.sendAlone(callOf("two"));
  await addInTwoTurns(batcher);
  assert.deepEqual(requests, [["one"], ["two"], ["first", "second"]]);
});

test("calls of clients wait for a place, in turns, and those of forebay itself do not", async () => {
  const { batcher, requests, answer } = createRecorded({ requests: 1 });
  for (const method of ["a1", "a2", "a3"]) {
    batcher.sendAlone(callOf(method, "a"));
  }
  batcher.sendAlone(callOf("b1", "b"));
  batcher.sendTogether([callOf("own1"), callOf("own2")]);
  assert.deepEqual(requests, [["a1"], ["own1", "own2"]]);
  for (let at = 0; at < 5; at += 1) {
    await answer();
  }
  assert.deepEqual(requests.slice(2), [["a2"], ["b1"], ["a3"]]);
});

test("a batch of forebay's own waits for the end of a pause, together, and calls of clients too", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { batcher, requests, state } = createRecorded();
  state.pauseMs = 1_000;
  batcher.sendTogether([callOf("own1"), callOf("own2")]);
  batcher.sendAlone(callOf("a1", "a"));
  assert.deepEqual(requests, []);
  state.pauseMs = 0;
  t.mock.timers.tick(1_000);
  assert.deepEqual(requests, [["own1", "own2"], ["a1"]]);
});

test("calls that wait for a node end when it is closed", () => {
  const { batcher, state, requests } = createRecorded();
  state.pauseMs = 1_000;
  const outcomes: unknown[] = [];
  const callTo = (method: string, client?: string) =>
    new SentCall(createCall(method, []), reach(client), true, (_, outcome) => outcomes.push(outcome));
  batcher.sendAlone(callTo("client", "a"));
  batcher.sendTogether([callTo("own")]);
  const closed = new NodeError("unreachable", "node", "closed");
  batcher.close(closed);
  assert.deepEqual([outcomes, requests], [[closed, closed], []]);
});

test("if too many calls wait, the newest of the client with the most makes room", () => {
  const { batcher, refused } = createRecorded({ requests: 1, maxWaiting: 3 });
  for (const method of ["a0", "a1", "a2", "a3", "a4"]) {
    batcher.sendAlone(callOf(method, "a"));
  }
  assert.deepEqual(refused, ["a4"]);
  batcher.sendAlone(callOf("b1", "b"));
  assert.deepEqual(refused, ["a4", "a3"]);
});

test("a client with few waiting calls is not refused, although another one's requests were admitted with many calls", () => {
  const { batcher, refused } = createRecorded({ requests: 1, maxWaiting: 4 });
  const scope = reach("a");
  for (let index = 0; index < 10; index += 1) {
    batcher.sendAlone(new SentCall(createCall(`a${index}`, []), scope, true, () => undefined));
  }
  for (const method of ["b1", "b2", "b3"]) {
    batcher.sendAlone(callOf(method, "b"));
  }
  batcher.sendAlone(callOf("a10", "a"));
  assert.deepEqual(refused, ["b3", "a10"]);
});

test("a read of the head is the next call, however many clients wait for the rate of the node", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { batcher, requests, state } = createRecorded();
  state.pauseMs = 1_000;
  for (let index = 0; index < 100; index += 1) {
    batcher.sendAlone(callOf("client", `client${index}`));
  }
  batcher.sendAlone(callOf("own"));
  const { signal } = new AbortController();
  const scope = { signal, deadlineMs: Number.POSITIVE_INFINITY, isHeadRead: true } as const;
  batcher.sendTogether([new SentCall(createCall("older headers", []), scope, true, () => undefined)]);
  batcher.sendAlone(new SentCall(createCall("head", []), scope, true, () => undefined));
  state.pauseMs = 0;
  t.mock.timers.tick(1_000);
  assert.deepEqual(requests[0], ["head"]);
});

test("a batch that is late is ended, and its calls are sent singly", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  t.mock.method(performance, "now", () => 0);
  const { batcher, requests, aborted } = createRecorded();
  batcher.add(callOf("a1", "a"));
  batcher.add(callOf("a2", "a"));
  await nextTurn();
  t.mock.timers.tick(1_000);
  await nextTurn();
  assert.deepEqual([requests, aborted], [[["a1", "a2"], ["a1"], ["a2"]], [["a1", "a2"]]]);
  assert.equal(batcher.inFlight, 2);
});
