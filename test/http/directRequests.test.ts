import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Endpoint, EndpointResponse } from "../../src/http/endpoint.ts";
import { HttpServer } from "../../src/http/httpServer.ts";
import { MemoryBudget } from "../../src/limits/memoryBudget.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { until } from "../support/clients/until.ts";
import { call, json } from "../support/servers/httpServer.ts";

const PARTS = 5_000;
const PART = Buffer.alloc(1_024, "a");

/** A server without a port. */
const open = (handle: Endpoint["handle"]) => {
  const { log, metrics, registry } = createTelemetry({ level: "silent" });
  const memory = new MemoryBudget(100_000_000);
  const server = new HttpServer({
    routes: new Map([["/", { handle }]]),
    ...{ host: "127.0.0.1", port: 0, keepAliveMs: 75_000, maxBodyBytes: 10_000, maxConnectionsPerAddress: 1 },
    ...{ corsOrigins: "*", about: () => "{}", telemetry: { log, metrics }, memory, writeTimeoutMs: 30_000 },
  });
  const fetch = (init: RequestInit = {}) =>
    server.fetch(new Request("http://a/", { method: "POST", headers: json, body: call("one"), ...init }));
  const inFlight = async () => Number(/^forebay_requests_in_flight (\d+)$/m.exec(await registry.metrics())?.[1]);
  return { fetch, inFlight, memory };
};

const streamed = (stream: AsyncIterable<Buffer>): EndpointResponse => ({
  ...{ status: 200, chunks: [stream], cacheStatus: "forebay; hit" },
});

/** A server whose only response is a stream. It counts the parts that were read, and breaks at part `failAt`. */
const serve = (failAt = Number.POSITIVE_INFINITY) => {
  const state = { read: 0, isAborted: false, hasEnded: false };
  const stream = async function* () {
    try {
      for (; state.read < PARTS; state.read++) {
        if (state.read === failAt) {
          throw new Error("broken on the way");
        }
        yield PART;
      }
    } finally {
      state.hasEnded = true;
    }
  };
  const { fetch, inFlight } = open((_, { signal }) => {
    signal.addEventListener("abort", () => {
      state.isAborted = true;
    });
    return streamed(stream());
  });
  return { fetch, state, inFlight };
};

/** A body that its test sends. */
const upload = () => {
  const { promise: cancelled, resolve } = Promise.withResolvers<unknown>();
  const sides = new TransformStream<Uint8Array, Uint8Array>();
  const writer = sides.writable.getWriter();
  writer.closed.catch(resolve);
  return { init: { body: sides.readable, duplex: "half" as const }, writer, cancelled };
};

const unasked: Endpoint["handle"] = () => assert.fail("the endpoint was asked");

test("an abort in the turn of fetch rejects it, and nobody is asked", async () => {
  const ending = new AbortController();
  const answer = open(unasked).fetch({ signal: ending.signal });
  ending.abort();
  await assert.rejects(answer, { name: "AbortError" });
});

test("an abort cancels the body, whose bytes count no more", async () => {
  const { fetch, inFlight, memory } = open(unasked);
  const ending = new AbortController();
  const { init, writer, cancelled } = upload();
  const answer = fetch({ ...init, signal: ending.signal });
  await writer.write(Buffer.from("["));
  await until(() => memory.usedBytes > 0, "the body is counted");
  // It arrives in the turn of the abort.
  writer.write(Buffer.alloc(5_000)).catch(() => undefined);
  ending.abort();
  await assert.rejects(answer, { name: "AbortError" });
  await cancelled;
  // The time limit of the body ends in the turn of its last event. Timers that the next test mocks would keep it for a minute.
  await turn();
  assert.deepEqual([memory.usedBytes, await inFlight()], [0, 0]);
});

test("a body that does not arrive in time is refused, and cancelled", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { fetch, memory } = open(unasked);
  const { init, writer, cancelled } = upload();
  const answer = fetch(init);
  await writer.write(Buffer.from("["));
  t.mock.timers.tick(60_000);
  const { status } = await answer;
  await cancelled;
  assert.deepEqual([status, memory.usedBytes], [408, 0]);
});

test("a body in too many pieces is refused, and cancelled", async () => {
  const { fetch, memory } = open(unasked);
  const { init, writer, cancelled } = upload();
  const answer = fetch(init);
  await assert.rejects(async () => {
    for (let sent = 0; sent < 10_000; sent++) {
      await writer.write(Buffer.from(" "));
    }
  });
  await cancelled;
  const response = await answer;
  assert.deepEqual([response.status, memory.usedBytes], [400, 0]);
  assert.match(await response.text(), /too many pieces/);
});

test("a stream waits for a slow node, and breaks if its reader is slow", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { promise: slow, resolve } = Promise.withResolvers<void>();
  const { fetch } = open(() =>
    streamed(
      (async function* () {
        yield Buffer.from("[1,");
        await slow;
        yield Buffer.from("2]");
      })(),
    ),
  );
  const reader = (await fetch()).body?.pipeThrough(new TextDecoderStream()).getReader();
  assert.equal((await reader?.read())?.value, "[1,");
  const rest = reader?.read();
  t.mock.timers.tick(60_000);
  resolve();
  assert.equal((await rest)?.value, "2]");
  assert.equal((await reader?.read())?.done, true);

  const unread = serve();
  const { body } = await unread.fetch();
  // The buffers between endpoint and reader are full.
  for (let before = -1; before < unread.state.read; ) {
    before = unread.state.read;
    await new Promise(setImmediate);
  }
  t.mock.timers.tick(30_000);
  await assert.rejects(new Response(body).arrayBuffer(), /nobody read the response/);
  assert.equal(unread.state.isAborted, true);
});

test("a stream is read to its end, and the request is in flight until then", async () => {
  const { fetch, state, inFlight } = serve();
  const response = await fetch();
  assert.equal(await inFlight(), 1);
  assert.equal((await response.arrayBuffer()).byteLength, PARTS * PART.length);
  await until(async () => (await inFlight()) === 0, "no request is in flight");
  assert.equal(state.isAborted, false);
});

test("a stream waits for its reader, and ends with it", async () => {
  const { fetch, state, inFlight } = serve();
  const { body } = await fetch();
  const reader = body?.getReader();
  await reader?.read();
  assert.ok(state.read < PARTS / 2, `${state.read} parts were read`);
  await reader?.cancel();
  await until(async () => (await inFlight()) === 0, "no request is in flight");
  assert.deepEqual([state.hasEnded, state.isAborted], [true, true]);
});

test("a stream that fails, and one whose request is aborted, reject its reader", async () => {
  const failing = serve(PARTS / 2);
  await assert.rejects((await failing.fetch()).arrayBuffer(), /broken on the way/);
  await until(async () => (await failing.inFlight()) === 0, "no request is in flight");
  const aborted = serve();
  const ending = new AbortController();
  const { body } = await aborted.fetch({ signal: ending.signal });
  const reader = body?.getReader();
  await reader?.read();
  ending.abort();
  await assert.rejects(async () => {
    for (let isDone = false; !isDone; ) {
      isDone = (await reader?.read())?.done !== false;
    }
  });
  await until(() => aborted.state.hasEnded && aborted.state.isAborted, "the calls have ended");
});
