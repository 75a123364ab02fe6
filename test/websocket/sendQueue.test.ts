import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import { MemoryBudget } from "../../src/limits/memoryBudget.ts";
import { SendQueue } from "../../src/websocket/sendQueue.ts";

const MIB = 1024 * 1024;

test("a response to a connection that has ended counts no unsent bytes", async (t) => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  t.after(() => server.close());
  await once(server, "listening");
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const [[socket, { socket: stream }]] = (await Promise.all([once(server, "connection"), once(client, "open")])) as [
    [WebSocket, IncomingMessage],
    unknown,
  ];
  const budget = new MemoryBudget(8 * MIB);
  const use = budget.open("responses", "client");
  const queue = new SendQueue({
    ...{ socket, stream, maxBufferBytes: MIB, writeTimeoutMs: 1_000, use },
    ...{ onSlow: () => undefined, onStalled: () => undefined, onRoom: () => undefined },
  });
  async function* parts() {
    yield Buffer.alloc(MIB);
    client.terminate();
    await once(socket, "close");
    use.end();
    yield Buffer.alloc(MIB);
  }
  await queue.sendResponse([parts()]);
  assert.equal(budget.usedBytes, 0);
});
