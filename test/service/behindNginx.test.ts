import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { WebSocket } from "ws";
import { hasNginx, startNginxWith } from "../bench/support/nginx.ts";
import { readRepositoryFile } from "../docs/repositoryFiles.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

/** The configuration of docs/operate.md without TLS, with other ports. */
const documented = (servicePort: string, port: number): string => {
  const [, text = ""] = /```\n(upstream forebay .*?)```/s.exec(readRepositoryFile("docs/operate.md")) ?? [];
  assert.ok(text.includes("127.0.0.1:8545") && text.includes("listen 443 ssl;"));
  return text.replace("8545", servicePort).replace("listen 443 ssl;", `listen 127.0.0.1:${port};`);
};

const skip = hasNginx() ? false : "nginx is not installed";

test("the documented nginx passes calls, WebSockets and the client's address", { skip }, async (t) => {
  const node = await createFakeNode();
  const service = await createService(
    { nodes: [{ url: node.url }] },
    { access: { limitPerAddress: { calls: 2, seconds: 600 }, trustedProxies: ["127.0.0.1"] } },
  );
  const nginx = await startNginxWith((port) => documented(new URL(service.url).port, port));
  t.after(async () => {
    await nginx.end();
    await service.close();
    await node.close();
  });
  const url = `http://127.0.0.1:${nginx.port}/`;
  assert.equal((await rpc(url, "eth_chainId")).status, 200);
  const socket = new WebSocket(url.replace("http", "ws"));
  await once(socket, "open");
  socket.send('{"jsonrpc":"2.0","id":7,"method":"eth_chainId"}');
  const [message] = await once(socket, "message");
  assert.equal(JSON.parse(String(message)).id, 7);
  socket.close();
  await once(socket, "close");
  assert.equal((await rpc(url, "eth_chainId")).status, 429);
  assert.equal(await metric(service.opsUrl, "forebay_access_refused_total", 'reason="rate"'), 1);
});
