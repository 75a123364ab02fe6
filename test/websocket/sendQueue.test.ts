import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import { MemoryBudget } from "../../src/limits/memoryBudget.ts";
import { SendQueue } from "../../src/websocket/sendQueue.ts";

const MIB = 1024 * 1024;

/** Opens a connection. `slow` is the number of times at which its reader was too slow. */
const open = async (t: TestContext) => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  t.after(() => server.close());
  await once(server, "listening");
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  t.after(() => client.terminate());
  const [[socket, { socket: stream }]] = (await Promise.all([once(server, "connection"), once(client, "open")])) as [
    [WebSocket, IncomingMessage],
    unknown,
  ];
  const budget = new MemoryBudget(8 * MIB);
  const use = budget.open("responses", "client");
  const counts = { slow: 0 };
  const queue = new SendQueue({
    ...{ socket, stream, maxBufferBytes: MIB, writeTimeoutMs: 1_000, use },
    ...{ onSlow: () => counts.slow++, onStalled: () => undefined, onRoom: () => undefined },
  });
  return { client, socket, budget, use, queue, counts };
};

test("a response to a connection that has ended counts no unsent bytes", async (t) => {
  const { client, socket, budget, use, queue } = await open(t);
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

test("events that wait for the end of a response are limited", async (t) => {
  const { queue, counts } = await open(t);
  const end = Promise.withResolvers<void>();
  async function* parts() {
    yield Buffer.alloc(1);
    await end.promise;
  }
  const sent = queue.sendResponse([parts()]);
  for (const expected of [0, 0, 1]) {
    queue.notify([Buffer.alloc(MIB / 2)], 1);
    assert.equal(counts.slow, expected);
  }
  end.resolve();
  await sent;
});
