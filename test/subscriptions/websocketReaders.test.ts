import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { WebSocket } from "ws";
import { allowEveryone } from "../../src/access/access.ts";
import type { Subscriber } from "../../src/core/context.ts";
import { createNotification } from "../../src/subscriptions/subscriber.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import type { HandleMessage } from "../../src/websocket/webSocketConnection.ts";
import { type WebSocketServerOptions, WebSockets } from "../../src/websocket/webSocketServer.ts";

const telemetry = createTelemetry({ level: "silent" });
const ID = Buffer.from(`0x${"1".repeat(32)}`);
const BODY_BYTES = 100_000;

/** A server whose only message is answered by `handle`, and one client of it. */
const connect = async (context: TestContext, handle: HandleMessage, options: Partial<WebSocketServerOptions> = {}) => {
  const errors: unknown[] = [];
  const { log } = createTelemetry({ level: "silent" });
  log.warn = ({ err }: { readonly err?: unknown }) => errors.push(err);
  const webSockets = new WebSockets({
    maxBodyBytes: 1_000,
    maxWebSockets: 10,
    maxWebSocketsPerAddress: 10,
    webSocketBufferBytes: 50_000,
    webSocketPingMs: 60_000,
    writeTimeoutMs: 60_000,
    webSocketIdleMs: 60_000,
    corsOrigins: "*",
    telemetry: { log, metrics: telemetry.metrics },
    ...options,
  });
  const server = createServer();
  const subscriber = Promise.withResolvers<Subscriber>();
  server.on("upgrade", (request, stream, head) =>
    webSockets.accept(
      { request, asked: {}, stream, head, admitted: allowEveryone(request), chain: "chain" },
      (body, message) => {
        subscriber.resolve(message.received.subscriber ?? assert.fail());
        return handle(body, message);
      },
    ),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = new WebSocket(url);
  const messages: string[] = [];
  client.on("message", (data) => messages.push(String(data)));
  const closed = once(client, "close").then(([code, reason]) => ({ code, reason: String(reason) }));
  await once(client, "open");
  context.after(async () => {
    client.terminate();
    await webSockets.close(0);
    server.close();
  });
  const ask = () => {
    client.send("{}");
    return subscriber.promise;
  };
  return { url, client, messages, closed, ask, webSockets, errors };
};

const nothing: HandleMessage = async () => ({ chunks: [] });

test("a reader that stops reading gets complete messages, then close code 1013, and is counted", async (context) => {
  const { client, messages, closed, ask } = await connect(context, nothing);
  const before = (await telemetry.metrics.slowClosed.get()).values[0]?.value ?? 0;
  const subscriber = await ask();
  let isEnded = false;
  subscriber.subscriptions.set("0x1", () => {
    isEnded = true;
  });
  client.pause();
  let sent = 0;
  while (subscriber.isOpen) {
    const body = Buffer.from(JSON.stringify(`${sent}`.padEnd(BODY_BYTES)));
    subscriber.notify(createNotification([body]).render(ID), sent);
    if (subscriber.isOpen) {
      sent++;
    }
    await turn();
  }
  assert.ok(isEnded);
  client.resume();
  assert.deepEqual(await closed, { code: 1013, reason: "the reader is too slow" });
  assert.deepEqual(
    messages.map((text) => Number(JSON.parse(text).params.result)),
    Array.from({ length: sent }, (_, at) => at),
  );
  assert.equal((await telemetry.metrics.slowClosed.get()).values[0]?.value, before + 1);
});

test("a burst in one turn of the event loop does not close the connection", async (context) => {
  const { client, messages, ask } = await connect(context, nothing);
  const subscriber = await ask();
  const notification = createNotification([Buffer.from(JSON.stringify("".padEnd(1_000)))]);
  for (let at = 0; at < 1_000; at++) {
    subscriber.notify(notification.render(ID), 1);
  }
  while (messages.length < 1_000) {
    await once(client, "message");
  }
  assert.ok(subscriber.isOpen);
});

test("events and other responses wait for the end of a streamed response", async (context) => {
  const parts = Promise.withResolvers<void>();
  async function* stream() {
    yield Buffer.from('"a');
    await parts.promise;
    yield Buffer.from('b"');
  }
  let count = 0;
  const { client, messages, ask } = await connect(context, async () => {
    count++;
    return { chunks: count === 1 ? [stream()] : [Buffer.from('"c"')] };
  });
  const subscriber = await ask();
  await turn();
  subscriber.notify(createNotification([Buffer.from('"event"')]).render(ID), 1);
  await ask();
  await turn();
  assert.deepEqual(messages, []);
  parts.resolve();
  while (messages.length < 3) {
    await once(client, "message");
  }
  assert.deepEqual(
    messages.map((text) => JSON.parse(text)?.params?.result ?? JSON.parse(text)),
    ["ab", "event", "c"],
  );
});

test("an incomplete response closes the connection with 1011", async (context) => {
  async function* stream() {
    yield Buffer.from('{"half":');
    throw new Error("the node broke off");
  }
  const { messages, closed, ask, errors } = await connect(context, async () => ({ chunks: [stream()] }));
  await ask();
  assert.equal((await closed).code, 1011);
  assert.deepEqual(messages, []);
  assert.equal(errors.length, 1);
});

test("closing waits for calls in flight and accepts no new ones", async (context) => {
  const result = Promise.withResolvers<void>();
  let calls = 0;
  const { client, messages, closed, ask, webSockets } = await connect(context, async () => {
    calls++;
    await result.promise;
    return { chunks: [Buffer.from('"done"')] };
  });
  await ask();
  const closing = webSockets.close(10_000);
  client.send("{}");
  await turn();
  result.resolve();
  assert.deepEqual(await closed, { code: 1001, reason: "going away" });
  await closing;
  assert.deepEqual(messages, ['"done"']);
  assert.equal(calls, 1);
});

test("a connection without pongs ends, an idle one is closed, and one with subscriptions stays open", async (context) => {
  // Pings are sent by the test: a stall between two real ones would end any connection.
  context.mock.timers.enable({ apis: ["setInterval"] });
  const options = { webSocketPingMs: 250, webSocketIdleMs: 0 };
  const sendPings = () => context.mock.timers.tick(options.webSocketPingMs);
  const idle = await connect(context, nothing, options);
  sendPings();
  assert.deepEqual(await idle.closed, { code: 1001, reason: "idle" });

  const busy = await connect(context, async () => ({ chunks: [Buffer.from("1")] }), options);
  const subscriber = await busy.ask();
  const left = Promise.withResolvers<void>();
  subscriber.subscriptions.set("0x1", left.resolve);
  for (let pings = 0; pings < 2; pings++) {
    const pinged = once(busy.client, "ping");
    sendPings();
    await pinged;
    // It follows the pong.
    const answered = once(busy.client, "message");
    busy.client.send("{}");
    await answered;
    assert.ok(subscriber.isOpen);
  }
  // A paused client reads no ping, so that it answers none.
  busy.client.pause();
  sendPings();
  assert.ok(subscriber.isOpen);
  sendPings();
  await left.promise;
  assert.ok(!subscriber.isOpen);
});

test("a large response to a reader that reads does not count as unread events", async (context) => {
  const reply = Buffer.alloc(12 * 1024 * 1024, "1");
  const { client, messages, ask } = await connect(context, async () => ({ chunks: [reply] }));
  client.pause();
  const subscriber = await ask();
  const count = 20;
  for (let burst = 1; burst <= count; burst++) {
    await turn();
    subscriber.notify(createNotification([Buffer.from(`${burst}`)]).render(ID), burst);
  }
  assert.ok(subscriber.isOpen);
  client.resume();
  while (messages.length < count + 1) {
    await once(client, "message");
  }
  assert.ok(messages.some(({ length }) => length === reply.length));
});

test("draining spreads the closes over half of its time, and each connection is served until its turn", async (context) => {
  const answer = Buffer.from("1");
  const { url, client: first, webSockets } = await connect(context, async () => ({ chunks: [answer] }));
  const clients = [first];
  while (clients.length < 10) {
    const client = new WebSocket(url);
    context.after(() => client.terminate());
    await once(client, "open");
    clients.push(client);
  }
  const timeoutMs = 4_000;
  const startMs = performance.now();
  const ends = clients.map(async (client) => {
    const [code] = await once(client, "close");
    return { code, ms: performance.now() - startMs };
  });
  const last = clients.at(-1) ?? assert.fail();
  const answers: string[] = [];
  last.on("message", (data) => answers.push(String(data)));
  const ended = webSockets.close(timeoutMs);
  last.send("{}");
  await ended;
  assert.deepEqual(answers, ["1"]);
  for (const [index, { code, ms }] of (await Promise.all(ends)).entries()) {
    assert.equal(code, 1001);
    // A timer may fire a millisecond early.
    assert.ok(ms >= (index * timeoutMs) / 2 / clients.length - 5, `${index} closed after ${ms} ms`);
  }
});
