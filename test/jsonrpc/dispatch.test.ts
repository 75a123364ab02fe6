import assert from "node:assert/strict";
import { test } from "node:test";
import type { Reply } from "../../src/jsonrpc/call.ts";
import { createDispatch, type DispatchOptions, type Handler, type Outcome } from "../../src/jsonrpc/dispatch.ts";
import { RpcError } from "../../src/jsonrpc/rpcError.ts";
import { readChunks } from "./readChunks.ts";

type Table = Record<string, Handler<undefined, Reply>>;

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const constant = (text: string) => async (): Promise<Reply> => ({ body: bytes(text) });

const setup = (methods: Table, options: Partial<DispatchOptions<undefined, Reply>> = {}) => {
  const outcomes: Outcome<undefined, Reply>[] = [];
  const errors: unknown[] = [];
  const dispatch = createDispatch<undefined, Reply>({
    lookup: (method) => methods[method],
    forward: async (call) => ({ body: bytes(`"forwarded ${call.method}"`) }),
    maxBatch: 10,
    maxResponseBytes: 1_000,
    onOutcome: (outcome) => outcomes.push(outcome),
    onError: (error) => errors.push(error),
    ...options,
  });
  const ask = async (text: string) => {
    const result = await dispatch(bytes(text), undefined);
    return { status: result.status, text: await readChunks(result.chunks), replies: result.replies };
  };
  return { ask, dispatch, outcomes, errors };
};

const request = (id: unknown, method: string, params: unknown[] = []): string =>
  JSON.stringify({ jsonrpc: "2.0", id, method, params });

const streamOf = (...parts: (string | Error)[]): (() => Promise<Reply>) => {
  const body = async function* (): AsyncGenerator<Uint8Array> {
    for (const part of parts) {
      if (typeof part !== "string") {
        throw part;
      }
      yield bytes(part);
    }
  };
  return async () => ({ body: body() });
};

test("a result and the id are spliced in unchanged", async () => {
  const { ask, outcomes } = setup({ one: constant('{ "a" : 1.0 }') });
  const { status, text } = await ask('{"id": 12345678901234567890.10 ,"method":"one","jsonrpc":"2.0"}');
  assert.equal(status, 200);
  assert.equal(text, '{"jsonrpc":"2.0","id":12345678901234567890.10,"result":{ "a" : 1.0 }}');
  assert.deepEqual(
    outcomes.map(({ call, error }) => [call.method, error]),
    [["one", undefined]],
  );
});

test("an unknown method is forwarded", async () => {
  const { ask } = setup({});
  assert.equal((await ask(request(1, "foo_bar"))).text, '{"jsonrpc":"2.0","id":1,"result":"forwarded foo_bar"}');
});

test("params are parsed on first use", async () => {
  const { ask } = setup({ echo: async (call) => ({ body: bytes(JSON.stringify(call.params)) }) });
  assert.equal(
    (await ask(request(1, "echo", [1, { a: "é" }]))).text,
    '{"jsonrpc":"2.0","id":1,"result":[1,{"a":"é"}]}',
  );
  assert.equal((await ask('{"jsonrpc":"2.0","id":1,"method":"echo"}')).text, '{"jsonrpc":"2.0","id":1,"result":[]}');
});

test("an RpcError is returned with its status, code, message and data", async () => {
  const { ask } = setup({
    fail: async () => {
      throw new RpcError(3, "execution reverted", { data: "0x08", status: 503 });
    },
  });
  const { status, text } = await ask(request("a", "fail"));
  assert.equal(status, 503);
  assert.equal(text, '{"jsonrpc":"2.0","id":"a","error":{"code":3,"message":"execution reverted","data":"0x08"}}');
  assert.equal((await ask(`[${request("a", "fail")}]`)).status, 200);
});

test("a node's error is returned byte for byte", async () => {
  const { ask } = setup({
    fail: async () => {
      throw new RpcError(-32000, "x", { text: bytes('{ "code":-32000, "message":"x", "more":1 }') });
    },
  });
  assert.equal(
    (await ask(request(1, "fail"))).text,
    '{"jsonrpc":"2.0","id":1,"error":{ "code":-32000, "message":"x", "more":1 }}',
  );
});

test("any other error is logged and not returned to the client", async () => {
  const secret = new TypeError("secret");
  const { ask, errors } = setup({
    fail: async () => {
      throw secret;
    },
  });
  const { text } = await ask(request(1, "fail"));
  assert.equal(text, '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error"}}');
  assert.deepEqual(errors, [secret]);
});

test("a batch runs in parallel and is answered in request order", async () => {
  const first = Promise.withResolvers<Reply>();
  const { ask } = setup({
    slow: () => first.promise,
    fast: async () => {
      first.resolve({ body: bytes('"slow"') });
      return { body: bytes('"fast"') };
    },
  });
  const { text } = await ask(`[${request(1, "slow")}, 7, ${request(2, "fast")}]`);
  assert.deepEqual(JSON.parse(text), [
    { jsonrpc: "2.0", id: 1, result: "slow" },
    { jsonrpc: "2.0", id: null, error: { code: -32600, message: "Invalid request: not an object" } },
    { jsonrpc: "2.0", id: 2, result: "fast" },
  ]);
});

test("notifications run and are not answered", async () => {
  const { ask, outcomes } = setup({ one: constant("1"), streamed: streamOf("1", "2") });
  const note = '{"jsonrpc":"2.0","method":"one"}';
  assert.deepEqual(await ask(note), { status: 204, text: "", replies: [] });
  assert.deepEqual(await ask(`[${note},${note}]`), { status: 204, text: "", replies: [] });
  assert.equal((await ask(`[${note},${request(1, "one")}]`)).text, '[{"jsonrpc":"2.0","id":1,"result":1}]');
  assert.equal((await ask(`[{"jsonrpc":"2.0","method":"streamed"}]`)).status, 204);
  assert.equal(outcomes.length, 6);
});

test("a batch above 4 MiB is streamed in order, and its later calls start as it is read", async () => {
  const large = `"${"x".repeat(1024 * 1024)}"`;
  let started = 0;
  const { dispatch } = setup(
    {
      large: () => {
        started++;
        return { body: bytes(large) };
      },
      fail: () => {
        throw new RpcError(3, "no");
      },
      note: constant("1"),
    },
    { maxResponseBytes: Number.POSITIVE_INFINITY },
  );
  const calls = [
    '{"jsonrpc":"2.0","method":"note"}',
    request(1, "fail"),
    ...Array.from({ length: 7 }, (_, at) => request(at + 2, "large")),
    '{"jsonrpc":"2.0","method":"note"}',
  ];
  const { status, chunks } = await dispatch(bytes(`[${calls.join()}]`), undefined);
  assert.equal(status, 200);
  assert.ok(started < 6, `${started} calls before the first byte is read`);
  const answers: readonly { id: number; result?: string; error?: object }[] = JSON.parse(await readChunks(chunks));
  assert.equal(started, 7);
  assert.deepEqual(
    answers.map(({ id, result }) => [id, result?.length]),
    [[1, undefined], ...Array.from({ length: 7 }, (_, at) => [at + 2, large.length - 2])],
  );
});

test("a batch of slow calls leaves each turn of the event loop to others, and batches of one turn share its time", async () => {
  let turns = 0;
  let isRunning = true;
  const countTurn = (): void => {
    turns++;
    if (isRunning) {
      setImmediate(countTurn);
    }
  };
  const { ask } = setup({
    slow: () => {
      const endMs = performance.now() + 5;
      while (performance.now() < endMs) {
        // The CPU is in use.
      }
      return { body: bytes("1") };
    },
  });
  setImmediate(countTurn);
  const batch = `[${Array.from({ length: 10 }, (_, id) => request(id, "slow")).join()}]`;
  const answers = await Promise.all([ask(batch), ask(batch)]);
  isRunning = false;
  // Two calls of 5 ms fit into a turn.
  assert.ok(turns >= 9, `${turns} turns`);
  for (const { text } of answers) {
    assert.equal(JSON.parse(text).length, 10);
  }
});

test("calls of a batch in flight are limited", async () => {
  let running = 0;
  let most = 0;
  const { ask } = setup(
    {
      one: async () => {
        running++;
        most = Math.max(most, running);
        await new Promise(setImmediate);
        running--;
        return { body: bytes("1") };
      },
    },
    { concurrency: 3 },
  );
  await ask(`[${Array.from({ length: 10 }, (_, id) => request(id, "one")).join()}]`);
  assert.equal(most, 3);
});

test("streams of a batch are written in order with few slots", async () => {
  const { ask } = setup({ streamed: streamOf("[1", ",2]"), one: constant("1") }, { concurrency: 2 });
  const { text } = await ask(
    `[${request(1, "streamed")},${request(2, "streamed")},${request(3, "streamed")},${request(4, "one")}]`,
  );
  assert.deepEqual(
    JSON.parse(text).map(({ id, result }: { id: number; result: unknown }) => [id, result]),
    [
      [1, [1, 2]],
      [2, [1, 2]],
      [3, [1, 2]],
      [4, 1],
    ],
  );
});

test("a stream that fails before its first byte is an error response, and a later failure breaks off", async () => {
  const { ask } = setup({
    early: streamOf(new RpcError(-32000, "early")),
    late: streamOf("[1", new RpcError(-32000, "late")),
  });
  assert.equal(
    (await ask(request(1, "early"))).text,
    '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"early"}}',
  );
  await assert.rejects(ask(request(1, "late")), /late/);
  await assert.rejects(ask(`[${request(1, "late")}]`), /late/);
});

test("a response over its limit is an error before the first byte and breaks off after it", async () => {
  const large = `"${"x".repeat(600)}"`;
  const { ask } = setup({
    large: constant(`"${"x".repeat(1_000)}"`),
    half: constant(large),
    streamed: streamOf(large, large),
    once: streamOf(`"${"x".repeat(1_000)}"`),
  });
  const error = '"error":{"code":-32003,"message":"response is larger than 1000 bytes"}';
  assert.equal((await ask(request(1, "large"))).text, `{"jsonrpc":"2.0","id":1,${error}}`);
  assert.equal((await ask(request(1, "once"))).text, `{"jsonrpc":"2.0","id":1,${error}}`);
  await assert.rejects(ask(request(1, "streamed")), /larger than 1000/);
  const batch = (await ask(`[${request(1, "half")},${request(2, "half")}]`)).text;
  assert.equal(batch, `[{"jsonrpc":"2.0","id":1,"result":${large}},{"jsonrpc":"2.0","id":2,${error}}]`);
  await assert.rejects(ask(`[${request(1, "half")},${request(2, "streamed")}]`), /larger than 1000/);
});

test("a client that disconnects ends its open streams", async () => {
  let open = 2;
  const ended = Promise.withResolvers<void>();
  const forever = async (): Promise<Reply> => ({
    body: (async function* () {
      try {
        for (;;) {
          yield bytes("1");
        }
      } finally {
        open--;
        if (open === 0) {
          ended.resolve();
        }
      }
    })(),
  });
  const { dispatch } = setup({ forever });
  const { chunks } = await dispatch(bytes(`[${request(1, "forever")},${request(2, "forever")}]`), undefined);
  const [body] = chunks;
  assert.ok(body !== undefined && !(body instanceof Uint8Array));
  let parts = 0;
  for await (const _ of body) {
    parts++;
    if (parts === 10) {
      break;
    }
  }
  await ended.promise;
});

test("a batch reports its error responses, and a notification has none", async () => {
  const { dispatch } = setup({
    boom: async () => {
      throw new RpcError(3, "execution reverted");
    },
  });
  const note = '{"jsonrpc":"2.0","method":"boom"}';
  const batch = `[${request(1, "boom")},${request(2, "echo")},${note},7]`;
  const { errors } = await dispatch(bytes(batch), undefined);
  assert.deepEqual(errors.map(({ code }) => code).toSorted(), [-32_600, 3]);
});

test("a batch starts at most one call with large parameters in a turn of the event loop", async () => {
  let startedInTurn = 0;
  const inTurns: number[] = [];
  const { ask } = setup({
    large: async () => {
      if (startedInTurn === 0) {
        setImmediate(() => {
          inTurns.push(startedInTurn);
          startedInTurn = 0;
        });
      }
      startedInTurn++;
      return { body: bytes("1") };
    },
  });
  const large = "a".repeat(70_000);
  const { text } = await ask(`[${[1, 2, 3, 4].map((id) => request(id, "large", [large])).join()}]`);
  assert.equal(JSON.parse(text).length, 4);
  assert.deepEqual(new Set(inTurns), new Set([1]));
});
