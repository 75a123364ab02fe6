import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { LazySignal } from "../../src/core/lazySignal.ts";
import { createCall } from "../../src/jsonrpc/call.ts";
import { CallBudget, RequestLimit } from "../../src/nodes/callAdmission.ts";
import { BatchLimit, CallBatcher } from "../../src/nodes/callBatcher.ts";
import { SentCall } from "../../src/nodes/exchange.ts";
import { NodeHealth } from "../../src/nodes/nodeHealth.ts";
import { silent } from "../support/builders/silent.ts";

const noPost = { abort: () => undefined };

/** A batcher whose HTTP requests are recorded and never answered. */
const createRecorded = () => {
  const requests: string[][] = [];
  const batcher = new CallBatcher({
    endpoint: {
      call: ({ call }) => {
        requests.push([call.method]);
        return noPost;
      },
      batch: (calls) => {
        requests.push(calls.map(({ call }) => call.method));
        return noPost;
      },
    },
    batchLimit: new BatchLimit(50),
    requestLimit: new RequestLimit(10),
    state: { begin: () => undefined, ended: () => undefined },
    budget: new CallBudget(undefined, { pauseMs: 0 }),
    health: new NodeHealth({ chain: "chain", node: "node" }, silent().metrics, {
      methodLabel: () => "other",
      unitsOf: () => 0,
    }),
  });
  return { batcher, requests };
};

const reach = () => {
  const { signal } = new AbortController();
  return { signal, lazySignal: new LazySignal(0), deadlineMs: Number.POSITIVE_INFINITY };
};

const callOf = (method: string): SentCall => new SentCall(createCall(method, []), reach(), true, () => undefined);

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
