import assert from "node:assert/strict";
import { test } from "node:test";
import { createCall } from "../../src/jsonrpc/call.ts";
import { createUpstreamNode } from "../../src/nodes/httpUpstreamNode.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";

test("a request can limit its response below the limit of the node, but not above", async (t) => {
  const fake = await createFakeNode({ handlers: { debug_traceBlockByHash: () => "x".repeat(10_000) } });
  const node = createUpstreamNode(
    {
      name: "one",
      chain: "test",
      url: fake.url,
      breaker: { failures: 5, openMs: 1_000 },
      maxResponseBytes: 50_000,
      methodLabel: () => "other",
    },
    createTelemetry({ level: "silent" }),
  );
  node.identified = true;
  t.after(async () => {
    await node.close();
    await fake.close();
  });
  const send = (maxBytes?: number) =>
    node.send(createCall("debug_traceBlockByHash", []), {
      signal: new AbortController().signal,
      deadlineMs: performance.now() + 20_000,
      ...(maxBytes === undefined ? {} : { maxBytes }),
    });
  await assert.rejects(send(9_000), { kind: "tooLarge" });
  assert.equal((await send(20_000)).length, 10_002);
  assert.equal((await send()).length, 10_002);
  assert.equal((await send(1_000_000)).length, 10_002);
});
