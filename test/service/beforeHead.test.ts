import assert from "node:assert/strict";
import { test } from "node:test";
import { createProcess } from "../../src/app/main.ts";
import { configSchema } from "../../src/config/schema.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { connectSocket } from "../support/clients/socketClient.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";

const REFUSED = { code: -32603, message: 'chain "down": no upstream node has reported a head yet' };

test("a chain whose nodes are down returns an error with each call's id, and the other chain is unaffected", async (t) => {
  const [up, down] = await Promise.all([createFakeNode(), createFakeNode()]);
  down.faults.answer = 503;
  const config = configSchema.parse({
    chains: [
      { name: "up", nodes: [{ url: up.url }], pending: { mode: "node" } },
      { name: "down", nodes: [{ url: down.url }], pending: { mode: "node" } },
    ],
    server: { port: 0, opsPort: 0 },
    access: { deny: ["eth_gasPrice"] },
    log: { level: "silent" },
  });
  const forebay = await createProcess(config, createTelemetry({ level: "silent" }));
  t.after(async () => {
    await forebay.close();
    await Promise.all([up.close(), down.close()]);
  });
  const url = `${forebay.url}/down`;

  const single = await rpc(url, "eth_chainId");
  assert.equal(single.status, 503);
  assert.equal(single.headers.get("retry-after"), "1");
  assert.deepEqual(JSON.parse(single.text), { jsonrpc: "2.0", id: 1, error: REFUSED });
  assert.equal((await rpc(url, "eth_gasPrice")).body.error?.code, -32601);

  const batch = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '[{"jsonrpc":"2.0","id":"a","method":"eth_chainId"},{"jsonrpc":"2.0","method":"eth_chainId"},7]',
  });
  assert.equal(batch.status, 200);
  assert.deepEqual(await batch.json(), [
    { jsonrpc: "2.0", id: "a", error: REFUSED },
    { jsonrpc: "2.0", id: null, error: { code: -32600, message: "Invalid request: not an object" } },
  ]);

  const socket = await connectSocket(url);
  assert.deepEqual((await socket.call("eth_chainId")).error, REFUSED);
  assert.deepEqual((await socket.call("eth_subscribe", "newHeads")).error, REFUSED);
  await socket.close();
  assert.equal(await metric(forebay.opsUrl, "forebay_requests_total", 'chain="down"', 'outcome="unavailable"'), 5);

  await until(async () => (await rpc(`${forebay.url}/up`, "eth_blockNumber")).status === 200, "an answer of the other");
});
