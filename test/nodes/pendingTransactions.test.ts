import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { WebSocketServer } from "ws";
import { PendingTransactions } from "../../src/nodes/pendingTransactions.ts";

/** A node's WebSocket that accepts or rejects the subscription, and sends what the test provides. */
const createPool = async (context: TestContext, response: object = { result: "0x1" }) => {
  const events = new EventEmitter<{ subscribed: [unknown]; closed: [] }>();
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  server.on("connection", (socket) => {
    socket.on("close", () => events.emit("closed"));
    socket.on("message", (data) => {
      const { id, params } = JSON.parse(String(data));
      socket.send(JSON.stringify({ jsonrpc: "2.0", id, ...response }));
      events.emit("subscribed", params);
    });
  });
  await once(server, "listening");
  context.after(() => {
    for (const socket of server.clients) {
      socket.terminate();
    }
    server.close();
  });
  return {
    events,
    server,
    node: { url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`, headers: {} },
    notify: (result: unknown) => {
      const params = { subscription: "0x1", result };
      for (const socket of server.clients) {
        socket.send(JSON.stringify({ jsonrpc: "2.0", method: "eth_subscription", params }));
      }
    },
  };
};

const rejection = { error: { code: -32_601, message: "no such subscription" } };

/** Collects the notifications of a listener, and waits for a number of them. */
const createListener = () => {
  const received: string[] = [];
  const events = new EventEmitter();
  return {
    received,
    listen: (body: Uint8Array) => {
      received.push(Buffer.from(body).toString());
      events.emit("received");
    },
    atLeast: async (count: number) => {
      while (received.length < count) {
        await once(events, "received");
      }
    },
  };
};

test("the streams of several nodes are merged: every listener gets each transaction once, with one subscription per node", async (context) => {
  const ending = new AbortController();
  context.after(() => ending.abort());
  const [one, two] = [await createPool(context), await createPool(context)];
  const pool = new PendingTransactions({ nodes: [one.node, two.node], signal: ending.signal });
  const [first, second] = [createListener(), createListener()];
  const both = Promise.all([once(one.events, "subscribed"), once(two.events, "subscribed")]);
  const stop = await pool.subscribe(false, first.listen);
  const stopSecond = await pool.subscribe(false, second.listen);
  assert.deepEqual(await both, [[["newPendingTransactions"]], [["newPendingTransactions"]]]);
  one.notify("0xaa");
  await first.atLeast(1);
  two.notify("0xaa");
  two.notify("0xbb");
  await second.atLeast(2);
  assert.deepEqual(
    [first.received, second.received],
    [
      ['"0xaa"', '"0xbb"'],
      ['"0xaa"', '"0xbb"'],
    ],
  );
  assert.deepEqual([one.server.clients.size, two.server.clients.size], [1, 1]);
  stop();
  const closed = Promise.all([once(one.events, "closed"), once(two.events, "closed")]);
  stopSecond();
  await closed;
});

test("full transactions are requested with the parameter true", async (context) => {
  const ending = new AbortController();
  context.after(() => ending.abort());
  const one = await createPool(context);
  const subscribed = once(one.events, "subscribed");
  const listener = createListener();
  await new PendingTransactions({ nodes: [one.node], signal: ending.signal }).subscribe(true, listener.listen);
  assert.deepEqual(await subscribed, [["newPendingTransactions", true]]);
  one.notify({ hash: "0xaa", value: "0x1" });
  one.notify({ hash: "0xaa", value: "0x1" });
  one.notify({ hash: "0xbb", value: "0x2" });
  await listener.atLeast(2);
  assert.deepEqual(listener.received, ['{"hash":"0xaa","value":"0x1"}', '{"hash":"0xbb","value":"0x2"}']);
});

test("one node with the subscription is sufficient, and without any the client gets -32601", async (context) => {
  const ending = new AbortController();
  context.after(() => ending.abort());
  const [good, bad] = [await createPool(context), await createPool(context, rejection)];
  const listener = createListener();
  await new PendingTransactions({ nodes: [bad.node, good.node], signal: ending.signal }).subscribe(
    false,
    listener.listen,
  );
  for (const nodes of [[], [bad.node]]) {
    await assert.rejects(new PendingTransactions({ nodes, signal: ending.signal }).subscribe(false, listener.listen), {
      code: -32_601,
      message: "no node of this chain offers newPendingTransactions",
    });
  }
});
