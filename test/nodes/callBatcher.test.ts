import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { LazySignal } from "../../src/core/lazySignal.ts";
import { NodeError } from "../../src/core/node.ts";
import { type Call, createCall } from "../../src/jsonrpc/call.ts";
import { BatchLimit } from "../../src/nodes/batchLimit.ts";
import { CallBatcher } from "../../src/nodes/callBatcher.ts";
import { type CallSender, SentCall } from "../../src/nodes/sentCall.ts";

const noPost = { abort: () => undefined };

/** A batcher whose HTTP requests are recorded and never answered. */
const createRecorded = () => {
  const requests: string[][] = [];
  const batcher = new CallBatcher({
    client: {
      call: ({ method }: Call) => {
        requests.push([method]);
        return noPost;
      },
      batch: (calls: readonly Call[]) => {
        requests.push(calls.map(({ method }) => method));
        return noPost;
      },
    },
    limit: new BatchLimit(50),
    maxInFlight: 10,
    maxWaitMs: 0,
    lateMs: () => Number.POSITIVE_INFINITY,
    onStart: () => undefined,
    onEnd: () => undefined,
    onRepeat: () => undefined,
  });
  return { batcher, requests };
};

const sender: CallSender = {
  createError: () => new NodeError("other", "node", "the client has disconnected"),
  settle: (_, outcome) => outcome,
};

const reach = () => {
  const { signal } = new AbortController();
  return { signal, lazySignal: new LazySignal(0), deadlineMs: Number.POSITIVE_INFINITY };
};

const callOf = (method: string): SentCall =>
  new SentCall(sender, { call: createCall(method, []), reach: reach(), isVerified: true, onOutcome: () => undefined });

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
