import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createCall } from "../../src/jsonrpc/call.ts";
import { createUpstreamNode } from "../../src/nodes/httpUpstreamNode.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";

const createNode = (t: TestContext, fake: FakeNode, maxResponseBytes: number) => {
  const node = createUpstreamNode(
    {
      name: "one",
      chain: "test",
      url: fake.url,
      breaker: { failures: 5, openMs: 1_000 },
      maxResponseBytes,
      methodLabel: () => "other",
      unitsOf: () => 0,
    },
    createTelemetry({ level: "silent" }),
  );
  node.identified = true;
  t.after(async () => {
    await node.close();
    await fake.close();
  });
  return (maxBytes?: number) =>
    node.send(createCall("debug_traceBlockByHash", []), {
      signal: new AbortController().signal,
      deadlineMs: performance.now() + 20_000,
      ...(maxBytes === undefined ? {} : { maxBytes }),
    });
};

test("a request can limit its response below the limit of the node, but not above", async (t) => {
  const fake = await createFakeNode({ handlers: { debug_traceBlockByHash: () => "x".repeat(10_000) } });
  const send = createNode(t, fake, 50_000);
  await assert.rejects(send(9_000), { kind: "tooLarge" });
  assert.equal((await send(20_000)).length, 10_002);
  assert.equal((await send()).length, 10_002);
  const small = createNode(
    t,
    await createFakeNode({ handlers: { debug_traceBlockByHash: () => "x".repeat(10_000) } }),
    9_000,
  );
  await assert.rejects(small(1_000_000), { kind: "tooLarge" });
});

test("a large response arrives unchanged, although it is joined in slices", async (t) => {
  const items = Array.from({ length: 400_000 }, (_, item) => item);
  const send = createNode(t, await createFakeNode({ handlers: { debug_traceBlockByHash: () => items } }), 50_000_000);
  const body = await send();
  assert.ok(body.length > 2_000_000);
  assert.deepEqual(JSON.parse(Buffer.from(body).toString()), items);
});
