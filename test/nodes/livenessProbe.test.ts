import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { type TestContext, test } from "node:test";
import { LivenessProbe } from "../../src/nodes/nodeEndpoint.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";

const createProbe = (t: TestContext, url: string): LivenessProbe => {
  const probe = new LivenessProbe({ origin: new URL(url).origin, path: "/", headers: {} });
  t.after(() => probe.close());
  return probe;
};

test("any response shows that the node is alive", async (t) => {
  const node = await createFakeNode();
  t.after(() => node.close());
  const probe = createProbe(t, node.url);
  assert.equal(await probe.send(), true);
  node.faults.answer = 503;
  assert.equal(await probe.send(), true);
  assert.equal(node.count("eth_chainId"), 2);
});

test("a node that hangs fails the probe, and passes the next one after it has recovered", async (t) => {
  const node = await createFakeNode();
  t.after(() => node.close());
  const probe = createProbe(t, node.url);
  node.faults.answer = "hang";
  assert.equal(await probe.send(), false);
  node.faults.answer = undefined;
  assert.equal(await probe.send(), true);
});

test("a closed port and a server that never speaks TLS fail the probe", async (t) => {
  const server = createServer((socket) => t.after(() => socket.destroy()));
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  assert.equal(await createProbe(t, `https://127.0.0.1:${port}`).send(), false);
  assert.equal(await createProbe(t, "http://127.0.0.1:1").send(), false);
});
