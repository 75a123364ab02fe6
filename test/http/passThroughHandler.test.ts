import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { request } from "undici";
import { WebSocket, WebSocketServer } from "ws";
import { createPassThroughHandler } from "../../src/http/passThroughHandler.ts";
import { createTestEndpoint, startHttpServer } from "../support/servers/httpServer.ts";

const startTarget = async () => {
  const server = createServer((asked, response) => {
    const chunks: Buffer[] = [];
    asked.on("data", (chunk: Buffer) => chunks.push(chunk));
    asked.on("end", () => response.end(`${asked.method} ${asked.url} ${Buffer.concat(chunks)}`));
  });
  const webSockets = new WebSocketServer({ server });
  webSockets.on("connection", (socket, asked) => {
    socket.on("message", (data) => socket.send(`${asked.url} ${data}`));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  const close = async (): Promise<void> => {
    for (const client of webSockets.clients) {
      client.terminate();
    }
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { url: `http://127.0.0.1:${address.port}`, close };
};

const start = async (target: string) => {
  const failures: Error[] = [];
  const passthrough = createPassThroughHandler({ target, timeoutMs: 5_000, onError: (error) => failures.push(error) });
  const server = await startHttpServer({ ...createTestEndpoint({ methods: {} }), passthrough });
  const close = async (): Promise<void> => {
    passthrough.close();
    await server.close(0);
  };
  return { ...server, failures, close };
};

test("requests that are not JSON-RPC are passed through without the chain's prefix, and JSON-RPC is not", async () => {
  const target = await startTarget();
  const server = await start(target.url);
  const ask = async (method: "GET" | "POST" | "PUT", path: string, body?: string) => {
    const headers = { "content-type": "application/json" };
    const response = await request(server.url + path, { method, headers, body: body ?? null });
    return response.body.text();
  };
  assert.equal(await ask("GET", "/health?full=1"), "GET /health?full=1 ");
  assert.equal(await ask("POST", "/rest/a", "hello"), "POST /rest/a hello");
  assert.equal(await ask("GET", "/base"), "GET / ");
  assert.equal(await ask("GET", "/base/health?full=1"), "GET /health?full=1 ");
  assert.equal(await ask("PUT", "/8453/a/b", "x"), "PUT /a/b x");
  assert.equal(await ask("GET", "/"), '{"name":"forebay"}');
  assert.match(await ask("POST", "/base", '{"jsonrpc":"2.0","id":1,"method":"m"}'), /forwarded m/);
  await server.close();
  await target.close();
});

test("WebSockets are passed through", async () => {
  const target = await startTarget();
  const server = await start(target.url);
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/base/feed`);
  await once(socket, "open");
  socket.send("hello");
  const [message] = await once(socket, "message");
  assert.equal(String(message), "/feed hello");
  const closed = once(socket, "close");
  await server.close();
  await closed;
  await target.close();
});

test("an unreachable target returns 502 without its name", async () => {
  const target = await startTarget();
  await target.close();
  const server = await start(target.url);
  const { statusCode, body } = await request(`${server.url}/health`);
  assert.equal(statusCode, 502);
  assert.doesNotMatch(await body.text(), /127\.0\.0\.1|ECONN/);
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/base`);
  const [error] = await once(socket, "error");
  assert.match(String(error), /502/);
  assert.equal(server.failures.length, 2);
  await server.close();
});

test("without a target a WebSocket is rejected", async () => {
  const server = await startHttpServer(createTestEndpoint({ methods: {} }));
  const socket = new WebSocket(server.url.replace("http", "ws"));
  const [error] = await once(socket, "error");
  assert.match(String(error), /404/);
  await server.close(0);
});
