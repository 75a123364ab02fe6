import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import { type TestContext, test } from "node:test";
import { createCall } from "../../src/jsonrpc/call.ts";
import { MemoryBudget } from "../../src/limits/memoryBudget.ts";
import { UpstreamNode } from "../../src/nodes/upstreamNode.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { listen } from "../support/servers/ports.ts";

const createNode = (
  t: TestContext,
  fake: Pick<FakeNode, "url" | "close">,
  maxResponseBytes: number,
  memory?: MemoryBudget,
) => {
  const node = new UpstreamNode(
    { name: "one", url: fake.url },
    { chain: "test", maxResponseBytes, memory },
    createTelemetry({ level: "silent" }),
  );
  node.identity.isIdentified = true;
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

/** Starts a node whose responses are written by `respond`. The body of each is the same JSON. */
const startNode = async (respond: (response: ServerResponse, body: Buffer) => void) => {
  const items = Array.from({ length: 400_000 }, (_, item) => item);
  const server = createServer(async (request, response) => {
    const [chunk] = await request.toArray();
    const { id } = JSON.parse(String(chunk));
    response.on("error", () => {});
    respond(response, Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, result: items })));
  });
  const port = await listen(server);
  const close = async () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}`, close, items };
};

for (const { name, length } of [
  { name: "of known length", length: (body: Buffer) => ({ "content-length": body.length }) },
  { name: "without a length, which is joined in slices,", length: () => ({}) },
]) {
  test(`a large response ${name} arrives unchanged`, async (t) => {
    const node = await startNode((response, body) => {
      response.writeHead(200, { "content-type": "application/json", ...length(body) });
      response.write(body.subarray(0, 100_000));
      setImmediate(() => response.end(body.subarray(100_000)));
    });
    const body = await createNode(t, node, 50_000_000)();
    assert.ok(body.length > 2_000_000);
    assert.deepEqual(JSON.parse(Buffer.from(body).toString()), node.items);
  });
}

test("a large response is refused by its length, before it arrives", async (t) => {
  const node = await startNode((response, body) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": body.length }).flushHeaders();
  });
  const memory = new MemoryBudget(1_000_000);
  await assert.rejects(createNode(t, node, 50_000_000, memory)(), { message: "the server is over its memory budget" });
  assert.equal(memory.usedBytes, 0);
  await assert.rejects(createNode(t, node, 1_000_000)(), { kind: "tooLarge" });
});

test("an informational response before a large one changes nothing", async (t) => {
  const node = await startNode((response, body) => {
    response.writeEarlyHints({ link: "</a>; rel=preload", "content-length": "70000" });
    response.writeHead(200, { "content-type": "application/json" }).end(body);
  });
  const body = await createNode(t, node, 50_000_000)();
  assert.deepEqual(JSON.parse(Buffer.from(body).toString()), node.items);
});

test("a length that a node announces and does not send takes no room in the budget", async (t) => {
  const announced = Promise.withResolvers<void>();
  const node = await startNode((response, body) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": body.length });
    response.write(body.subarray(0, 100_000), () => announced.resolve());
  });
  const memory = new MemoryBudget(10_000_000);
  const reading = assert.rejects(createNode(t, node, 50_000_000, memory)(), { kind: "unreachable" });
  await announced.promise;
  await until(() => memory.usedBytes === 100_000, "what was sent has arrived");
  await node.close();
  await reading;
  assert.equal(memory.usedBytes, 0);
});

test("a response that ends before its length is an error", async (t) => {
  const node = await startNode((response, body) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": body.length });
    response.write(body.subarray(0, 1_000_000), () => response.destroy());
  });
  const memory = new MemoryBudget(10_000_000);
  await assert.rejects(createNode(t, node, 50_000_000, memory)(), { kind: "unreachable" });
  assert.equal(memory.usedBytes, 0);
});
