import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { WebSocketServer } from "ws";
import { createPendingTransactions } from "../../src/nodes/pendingTransactions.ts";

/** A node's WebSocket that accepts or rejects the subscription, and sends what the test provides. */
const createPool = async (context: TestContext, answer: object = { result: "0x1" }) => {
  const events = new EventEmitter<{ asked: [unknown]; left: [] }>();
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  server.on("connection", (socket) => {
    socket.on("close", () => events.emit("left"));
    socket.on("message", (data) => {
      const { id, params } = JSON.parse(String(data));
      socket.send(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
      events.emit("asked", params);
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
    tell: (result: unknown) => {
      const params = { subscription: "0x1", result };
      for (const socket of server.clients) {
        socket.send(JSON.stringify({ jsonrpc: "2.0", method: "eth_subscription", params }));
      }
    },
  };
};

const refusal = { error: { code: -32_601, message: "no such subscription" } };

/** What a listener hears, and when it has heard so much. */
const createListener = () => {
  const heard: string[] = [];
  const events = new EventEmitter();
  return {
    heard,
    listen: (body: Uint8Array) => {
      heard.push(Buffer.from(body).toString());
      events.emit("heard");
    },
    atLeast: async (count: number) => {
      while (heard.length < count) {
        await once(events, "heard");
      }
    },
  };
};

test("several nodes are one stream: each transaction once, to every listener, by one subscription a node", async (context) => {
  const ending = new AbortController();
  context.after(() => ending.abort());
  const [one, two] = [await createPool(context), await createPool(context)];
  const pool = createPendingTransactions({ nodes: [one.node, two.node], signal: ending.signal });
  const [first, second] = [createListener(), createListener()];
  const both = Promise.all([once(one.events, "asked"), once(two.events, "asked")]);
  const stop = await pool.subscribe(false, first.listen);
  const stopSecond = await pool.subscribe(false, second.listen);
  assert.deepEqual(await both, [[["newPendingTransactions"]], [["newPendingTransactions"]]]);
  one.tell("0xaa");
  await first.atLeast(1);
  two.tell("0xaa");
  two.tell("0xbb");
  await second.atLeast(2);
  assert.deepEqual(
    [first.heard, second.heard],
    [
      ['"0xaa"', '"0xbb"'],
      ['"0xaa"', '"0xbb"'],
    ],
  );
  assert.deepEqual([one.server.clients.size, two.server.clients.size], [1, 1]);
  stop();
  const left = Promise.all([once(one.events, "left"), once(two.events, "left")]);
  stopSecond();
  await left;
});

test("whole transactions are asked for as such", async (context) => {
  const ending = new AbortController();
  context.after(() => ending.abort());
  const one = await createPool(context);
  const asked = once(one.events, "asked");
  const listener = createListener();
  await createPendingTransactions({ nodes: [one.node], signal: ending.signal }).subscribe(true, listener.listen);
  assert.deepEqual(await asked, [["newPendingTransactions", true]]);
  one.tell({ hash: "0xaa", value: "0x1" });
  one.tell({ hash: "0xaa", value: "0x1" });
  one.tell({ hash: "0xbb", value: "0x2" });
  await listener.atLeast(2);
  assert.deepEqual(listener.heard, ['{"hash":"0xaa","value":"0x1"}', '{"hash":"0xbb","value":"0x2"}']);
});

test("one node that offers it is enough; where none does, the caller hears -32601", async (context) => {
  const ending = new AbortController();
  context.after(() => ending.abort());
  const [good, bad] = [await createPool(context), await createPool(context, refusal)];
  const listener = createListener();
  await createPendingTransactions({ nodes: [bad.node, good.node], signal: ending.signal }).subscribe(
    false,
    listener.listen,
  );
  for (const nodes of [[], [bad.node]]) {
    await assert.rejects(
      createPendingTransactions({ nodes, signal: ending.signal }).subscribe(false, listener.listen),
      { code: -32_601, message: "no node of this chain offers newPendingTransactions" },
    );
  }
});
