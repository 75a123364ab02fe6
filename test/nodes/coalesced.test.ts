import assert from "node:assert/strict";
import { test } from "node:test";
import type { Context } from "../../src/core/context.ts";
import { NodeError } from "../../src/core/node.ts";
import type { NodeSource, RpcRequest, RpcResponse } from "../../src/core/rpcSource.ts";
import { coalesced } from "../../src/nodes/coalesced.ts";
import { createHeads } from "../support/builders/heads.ts";
import { createContext, createRequest } from "../support/builders/request.ts";

/** Creates a coalesced source that holds every request until the test provides the response. */
const createHeldSource = () => {
  const sent: {
    request: RpcRequest;
    context: Context;
    answer: (text: string) => void;
    fail: (error: Error) => void;
  }[] = [];
  const source: NodeSource = {
    request: (request, context) => {
      const { promise, resolve, reject } = Promise.withResolvers<RpcResponse>();
      sent.push({
        request,
        context,
        fail: reject,
        answer: (text) => resolve({ body: Buffer.from(text), status: {} }),
      });
      return promise;
    },
  };
  const answerAll = (): void => {
    for (const { answer } of sent) {
      answer("1");
    }
  };
  return { sent, answerAll, source: coalesced(source) };
};

const read = createRequest({ method: "eth_getBalance", params: ["0x01", "0x5"] });

test("equal concurrent reads share one request, and the status of followers shows it", async () => {
  const { sent, answerAll, source } = createHeldSource();
  const answers = [1, 2, 3].map(() => source.request(read, createContext()));
  assert.equal(sent.length, 1);
  sent[0]?.answer("1");
  const statuses = (await Promise.all(answers)).map(({ status }) => status.collapsed);
  assert.deepEqual(statuses, [undefined, true, true]);
  const later = source.request(read, createContext());
  assert.equal(sent.length, 2);
  answerAll();
  await later;
});

test("reads with other params or block hashes, writes, and reads that bypass the cache are not shared", async () => {
  const { sent, answerAll, source } = createHeldSource();
  const block = (digit: string) => ({ block: { number: 5n, hash: `0x${digit.repeat(64)}` as const } });
  const different = [
    read,
    createRequest({ method: "eth_getBalance", params: ["0x02", "0x5"] }),
    createRequest({ method: "eth_getCode", params: ["0x01", "0x5"] }),
    { ...read, ...block("1") },
    { ...read, ...block("2") },
  ];
  const answers = different.map((each) => source.request(each, createContext()));
  assert.equal(sent.length, 5);
  for (const alone of [{ write: true }, { retention: "never" } as const]) {
    answers.push(source.request({ ...read, ...alone }, createContext()));
  }
  answers.push(source.request(read, createContext({ bypassCache: true })));
  assert.equal(sent.length, 8);
  answerAll();
  await Promise.all(answers);
});

test("the request is aborted when its last client disconnects, not before", async () => {
  const { sent, answerAll, source } = createHeldSource();
  const callers = [new AbortController(), new AbortController()];
  const answers = callers.map(({ signal }) => source.request(read, createContext({ signal })));
  callers[0]?.abort();
  await assert.rejects(answers[0] ?? Promise.resolve());
  assert.equal(sent[0]?.context.signal.aborted, false);
  callers[1]?.abort();
  await assert.rejects(answers[1] ?? Promise.resolve());
  assert.equal(sent[0]?.context.signal.aborted, true);
  const bypassCache = source.request(read, createContext());
  assert.equal(sent.length, 2, "an aborted request is not shared");
  answerAll();
  await bypassCache;
});

test("a client gets the reason of its own signal, also if nobody else waits", async () => {
  const { source } = createHeldSource();
  const controller = new AbortController();
  const answer = source.request(read, createContext({ signal: controller.signal }));
  const reason = new Error("the time of the client is over");
  controller.abort(reason);
  await assert.rejects(answer, reason);
});

test("a follower keeps its own deadline", async () => {
  const { sent, source } = createHeldSource();
  const leader = source.request(read, createContext());
  const follower = source.request(read, createContext({ deadlineMs: performance.now() + 5 }));
  await assert.rejects(follower, { status: 504 });
  sent[0]?.answer("1");
  await leader;
});

test("a follower with a later deadline than the first client sends the request again", async () => {
  const { sent, source } = createHeldSource();
  const leader = source.request(read, createContext({ deadlineMs: performance.now() + 5 }));
  const follower = source.request(read, createContext());
  await assert.rejects(leader, { status: 504 });
  sent[0]?.fail(new NodeError("timeout", "node1", "late", { status: 504 }));
  await new Promise(setImmediate);
  sent[1]?.answer("1");
  assert.ok(await follower);
});

test("every waiting client gets the error", async () => {
  const { sent, source } = createHeldSource();
  const answers = [1, 2].map(() => source.request(read, createContext()));
  sent[0]?.fail(new Error("no"));
  for (const answer of answers) {
    await assert.rejects(answer, { message: "no" });
  }
});

test("reads of the head and of transactions are shared only by requests with the same head", async () => {
  for (const retention of ["head", "byTransaction"] as const) {
    const { sent, answerAll, source } = createHeldSource();
    const heads = [1, 1, 2].map((number) => createHeads({ latest: BigInt(number) }));
    const answers = heads.map((each) =>
      source.request(
        createRequest({ method: "eth_getTransactionReceipt", params: ["0x01"], retention }),
        createContext({ view: { heads: each } }),
      ),
    );
    assert.equal(sent.length, 2);
    answerAll();
    await Promise.all(answers);
  }
});

test("a read of a submitted transaction does not share the request of an earlier read", async () => {
  const { sent, source } = createHeldSource();
  const early = createRequest({ method: "eth_getTransactionByHash", params: ["0x01"], retention: "byTransaction" });
  const answers = [early, { ...early, nullIsError: true }].map((each) => source.request(each, createContext()));
  sent[0]?.answer("null");
  sent[1]?.answer("{}");
  const bodies = (await Promise.all(answers)).map(({ body }) => String(body));
  assert.deepEqual(bodies, ["null", "{}"]);
});
