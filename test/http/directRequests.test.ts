import assert from "node:assert/strict";
import { test } from "node:test";
import type { EndpointResponse } from "../../src/http/endpoint.ts";
import { HttpServer } from "../../src/http/httpServer.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { until } from "../support/clients/until.ts";
import { call, json } from "../support/servers/httpServer.ts";

const PARTS = 5_000;
const PART = Buffer.alloc(1_024, "a");

/** A server without a port, whose only response is a stream. It counts the parts that were read, and breaks at part `failAt`. */
const serve = (failAt = Number.POSITIVE_INFINITY) => {
  const { log, metrics, registry } = createTelemetry({ level: "silent" });
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
  const server = new HttpServer({
    routes: new Map([
      [
        "/",
        {
          handle: (_, { signal }): EndpointResponse => {
            signal.addEventListener("abort", () => {
              state.isAborted = true;
            });
            return { status: 200, chunks: [stream()], cacheStatus: "forebay; hit" };
          },
        },
      ],
    ]),
    ...{ host: "127.0.0.1", port: 0, keepAliveMs: 75_000, maxBodyBytes: 10_000, maxConnectionsPerAddress: 1 },
    ...{ corsOrigins: "*", about: () => "{}", telemetry: { log, metrics } },
  });
  const fetch = (init: RequestInit = {}) =>
    server.fetch(new Request("http://a/", { method: "POST", headers: json, body: call("one"), ...init }));
  const inFlight = async () => Number(/^forebay_requests_in_flight (\d+)$/m.exec(await registry.metrics())?.[1]);
  return { fetch, state, inFlight };
};

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
