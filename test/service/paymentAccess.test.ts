import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { once } from "node:events";
import { after, test } from "node:test";
import { WebSocket } from "ws";
import { startPaidService } from "../support/payments/paidService.ts";
import { chainId, post } from "../support/payments/payer.ts";
import { createService } from "../support/servers/service.ts";

const KEY = { name: "free", sha256: hash("sha256", "k-free") };

const { node, payer, payment, close } = await startPaidService();
after(close);

test("a WebSocket, and a request that is passed through, are refused with the reason where nobody has a key", async (t) => {
  const own = await createService(
    { nodes: [{ url: node.url }], passthrough: node.url },
    { access: { payment: payment() } },
  );
  t.after(() => own.close());
  const reason = /only JSON-RPC by POST can be paid for: this request needs an API key/;
  const refused = await fetch(`${own.url}/eth/v1/node`);
  assert.deepEqual([refused.status, reason.test(await refused.text())], [401, true]);
  const [, response] = await once(new WebSocket(own.url.replace("http:", "ws:")), "unexpected-response");
  assert.equal(response.statusCode, 401);
  assert.match(String((await response.toArray()).join("")), reason);
});

test("beside keys, a client without one can do nothing but pay for JSON-RPC", async (t) => {
  const own = await createService(
    { nodes: [{ url: node.url }], passthrough: node.url },
    { access: { payment: payment(), keys: [KEY] } },
  );
  t.after(() => own.close());
  for (const path of ["/eth/v1/node", "/", "/status.json"]) {
    assert.equal((await fetch(own.url + path)).status, 401, path);
  }
  const written = await fetch(`${own.url}/eth/v1/node`, { method: "POST", body: "{}" });
  assert.match(await written.text(), /only JSON-RPC by POST can be paid for/);
  const url = own.url.replace("http:", "ws:");
  const [, response] = await once(new WebSocket(url), "unexpected-response");
  assert.equal(response.statusCode, 401);
  assert.match(String((await response.toArray()).join("")), /an API key is needed/);
  const socket = new WebSocket(url, { headers: { "x-api-key": "k-free" } });
  await once(socket, "open");
  socket.close();
});

test("a client with a key does not pay, one with a wrong key is refused, one without a key pays", async (t) => {
  const own = await createService({ nodes: [{ url: node.url }] }, { access: { payment: payment(), keys: [KEY] } });
  t.after(() => own.close());
  assert.equal((await post(own.url, chainId, { "x-api-key": "k-free" })).status, 200);
  assert.equal((await post(own.url, chainId, { "x-api-key": "k-wrong" })).status, 401);
  assert.equal((await payer.send(own.url, chainId)).status, 200);
});
