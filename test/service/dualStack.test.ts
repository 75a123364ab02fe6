import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { networkInterfaces } from "node:os";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

const hasIpv6 = Object.values(networkInterfaces())
  .flat()
  .some((network) => network?.family === "IPv6");
const BODY = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_blockNumber", params: [] });

test("on a port for IPv6 and IPv4, each IPv4 address has its own limit of connections", {
  skip: !hasIpv6 && "no IPv6",
}, async (t) => {
  const node = await createFakeNode();
  t.after(() => node.close());
  const service = await createService(
    { nodes: [{ url: node.url }] },
    { server: { host: "::", maxConnectionsPerAddress: 1 } },
  );
  t.after(() => service.close());
  const { port } = new URL(service.url);
  /** Sends a call on a connection that stays open. */
  const send = async (localAddress: string): Promise<number | undefined> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => agent.destroy());
    const sent = request({ host: "127.0.0.1", port, localAddress, agent, method: "POST" });
    sent.setHeader("content-type", "application/json").end(BODY);
    const [response] = await once(sent, "response");
    await text(response);
    return response.statusCode;
  };
  assert.equal(await send("127.0.0.1"), 200);
  assert.equal(await send("127.0.0.2"), 200);
  assert.equal(await send("127.0.0.1"), 429, "the second connection of the first address");
});
