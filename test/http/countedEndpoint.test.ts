import assert from "node:assert/strict";
import { test } from "node:test";
import { countedEndpoint } from "../../src/http/countedEndpoint.ts";
import type { EndpointAnswer, EndpointRequest } from "../../src/http/endpoint.ts";

const request: EndpointRequest = {
  requestId: "r",
  caller: "c",
  headers: {},
  signal: new AbortController().signal,
};
const answer = (chunks: EndpointAnswer["chunks"]): EndpointAnswer => ({ status: 200, cacheStatus: "", chunks });

test("idle when the last answer is given, and its stream has ended", async () => {
  const first = Promise.withResolvers<EndpointAnswer>();
  const { endpoint, idle } = countedEndpoint({ handle: () => first.promise });
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
    for await (const part of chunk) assert.equal(Buffer.from(part).toString(), "a");
  }
  await waited;
});

test("what fails has ended too", async () => {
  const { endpoint, idle } = countedEndpoint({ handle: () => Promise.reject(new Error("no")) });
  await assert.rejects(endpoint.handle(new Uint8Array(), request));
  await idle();
});
