import assert from "node:assert/strict";
import { test } from "node:test";
import type { EndpointResponse } from "../../src/http/endpoint.ts";
import { trackInFlight } from "../../src/http/trackInFlight.ts";
import { createInbound } from "../support/builders/request.ts";

const request = createInbound();
const answer = (chunks: EndpointResponse["chunks"]): EndpointResponse => ({ status: 200, cacheStatus: "", chunks });

test("drained when the last response and its stream have ended", async () => {
  const first = Promise.withResolvers<EndpointResponse>();
  const { endpoint, idle } = trackInFlight({ handle: () => first.promise });
  await idle();
  const given = endpoint.handle(new Uint8Array(), request);
  let isIdle = false;
  const waited = idle().then(() => {
    isIdle = true;
  });
  first.resolve(
    answer([
      (async function* () {
        yield Buffer.from("a");
      })(),
    ]),
  );
  const { chunks } = await given;
  await new Promise(setImmediate);
  assert.equal(isIdle, false);
  for (const chunk of chunks) {
    assert.ok(!(chunk instanceof Uint8Array));
    for await (const part of chunk) {
      assert.equal(Buffer.from(part).toString(), "a");
    }
  }
  await waited;
});

test("a failed request has ended too", async () => {
  const { endpoint, idle } = trackInFlight({ handle: () => Promise.reject(new Error("no")) });
  await assert.rejects(async () => endpoint.handle(new Uint8Array(), request));
  await idle();
  const sync = trackInFlight({
    handle: () => {
      throw new Error("no");
    },
  });
  assert.throws(() => sync.endpoint.handle(new Uint8Array(), request), /no/);
  await sync.idle();
});
