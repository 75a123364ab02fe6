import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeError } from "../../src/core/node.ts";
import type { NodeSource, RequestContext, RpcRequest, RpcResponse } from "../../src/core/rpcSource.ts";
import { coalesced } from "../../src/nodes/requestCoalescer.ts";
import { createHeads } from "../support/builders/heads.ts";
import { createContext, createRequest } from "../support/builders/request.ts";

/** Holds every request until the test provides the response. */
const createHeld = () => {
  const asked: {
    question: RpcRequest;
    context: RequestContext;
    answer: (text: string) => void;
    fail: (error: Error) => void;
  }[] = [];
  const source: NodeSource = {
    request: (question, context) => {
      const { promise, resolve, reject } = Promise.withResolvers<RpcResponse>();
      asked.push({
        question,
        context,
        fail: reject,
        answer: (text) => resolve({ body: Buffer.from(text), status: {} }),
      });
      return promise;
    },
  };
  const answerAll = (): void => {
    for (const { answer } of asked) {
      answer("1");
    }
  };
  return { asked, answerAll, source: coalesced(source) };
};

const question = createRequest({ method: "eth_getBalance", params: ["0x01", "0x5"] });

test("equal reads under way are asked once, and followers are told", async () => {
  const { asked, answerAll, source } = createHeld();
  const answers = [1, 2, 3].map(() => source.request(question, createContext()));
  assert.equal(asked.length, 1);
  asked[0]?.answer("1");
  const statuses = (await Promise.all(answers)).map(({ status }) => status.collapsed);
  assert.deepEqual(statuses, [undefined, true, true]);
  const later = source.request(question, createContext());
  assert.equal(asked.length, 2);
  answerAll();
  await later;
});

test("other params, another block hash, writes, fresh and unkept reads are not shared", async () => {
  const { asked, answerAll, source } = createHeld();
  const block = (digit: string) => ({ block: { number: 5n, hash: `0x${digit.repeat(64)}` as const } });
  const different = [
    question,
    createRequest({ method: "eth_getBalance", params: ["0x02", "0x5"] }),
    createRequest({ method: "eth_getCode", params: ["0x01", "0x5"] }),
    { ...question, ...block("1") },
    { ...question, ...block("2") },
  ];
  const answers = different.map((each) => source.request(each, createContext()));
  assert.equal(asked.length, 5);
  for (const alone of [{ write: true }, { retention: "never" } as const]) {
    answers.push(source.request({ ...question, ...alone }, createContext()));
  }
  answers.push(source.request(question, createContext({ bypassCache: true })));
  assert.equal(asked.length, 8);
  answerAll();
  await Promise.all(answers);
});

test("the request is aborted when its last asker has left, not before", async () => {
  const { asked, answerAll, source } = createHeld();
  const callers = [new AbortController(), new AbortController()];
  const answers = callers.map(({ signal }) => source.request(question, createContext({ signal })));
  callers[0]?.abort();
  await assert.rejects(answers[0] ?? Promise.resolve());
  assert.equal(asked[0]?.context.signal.aborted, false);
  callers[1]?.abort();
  await assert.rejects(answers[1] ?? Promise.resolve());
  assert.equal(asked[0]?.context.signal.aborted, true);
  const bypassCache = source.request(question, createContext());
  assert.equal(asked.length, 2, "nobody joins what was aborted");
  answerAll();
  await bypassCache;
});

test("a follower keeps its own deadline", async () => {
  const { asked, source } = createHeld();
  const leader = source.request(question, createContext());
  const follower = source.request(question, createContext({ deadlineMs: performance.now() + 5 }));
  await assert.rejects(follower, { status: 504 });
  asked[0]?.answer("1");
  await leader;
});

test("a follower with more time than the first asker asks again", async () => {
  const { asked, source } = createHeld();
  const leader = source.request(question, createContext({ deadlineMs: performance.now() + 5 }));
  const follower = source.request(question, createContext());
  await assert.rejects(leader, { status: 504 });
  asked[0]?.fail(new NodeError("timeout", "node1", "late", { status: 504 }));
  await new Promise(setImmediate);
  asked[1]?.answer("1");
  assert.ok(await follower);
});

test("an error reaches all that wait for it", async () => {
  const { asked, source } = createHeld();
  const answers = [1, 2].map(() => source.request(question, createContext()));
  asked[0]?.fail(new Error("no"));
  for (const answer of answers) {
    await assert.rejects(answer, { message: "no" });
  }
});

test("what depends on the head, and an absence, is shared only by those who have the same head", async () => {
  for (const retention of ["head", "byTransaction"] as const) {
    const { asked, answerAll, source } = createHeld();
    const heads = [1, 1, 2].map((number) => createHeads({ latest: BigInt(number) }));
    const answers = heads.map((each) =>
      source.request(
        createRequest({ method: "eth_getTransactionReceipt", params: ["0x01"], retention }),
        createContext({ view: { heads: each } }),
      ),
    );
    assert.equal(asked.length, 2);
    answerAll();
    await Promise.all(answers);
  }
});

test("who asks for a transaction after it was sent does not share the absence that another asks for before", async () => {
  const { asked, source } = createHeld();
  const early = createRequest({ method: "eth_getTransactionByHash", params: ["0x01"], retention: "byTransaction" });
  const answers = [early, { ...early, nullIsError: true }].map((each) => source.request(each, createContext()));
  asked[0]?.answer("null");
  asked[1]?.answer("{}");
  const bodies = (await Promise.all(answers)).map(({ body }) => String(body));
  assert.deepEqual(bodies, ["null", "{}"]);
});
