import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { test } from "node:test";
import { request as send } from "undici";
import { call, createTestEndpoint, json, startHttpServer, startTestServer } from "../support/servers/httpServer.ts";

const TIMEOUT_MS = 30_000;

test("a stream that fails breaks the connection", async () => {
  const server = await startTestServer();
  for (const accept of ["identity", "gzip"]) {
    const headers = { ...json, "accept-encoding": accept };
    await assert.rejects(async () => {
      const { body } = await send(server.url, { method: "POST", headers, body: call("broken") });
      await body.text();
    });
  }
  assert.equal(server.errors.length, 2);
  await server.close(0);
});

test("a body above the limit is rejected, and the sender can read the error", async () => {
  const server = await startTestServer({ maxBodyBytes: 1_000 });
  const refused =
    '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: body is larger than 1000 bytes"}}';
  const parts = async function* () {
    for (let part = 0; part < 200; part++) {
      yield Buffer.alloc(10_000, "x");
    }
  };
  for (const body of ["x".repeat(2_000_000), Readable.from(parts())]) {
    const response = await send(server.url, { method: "POST", headers: json, body });
    assert.equal(response.statusCode, 400);
    assert.equal(response.headers.connection, "close");
    assert.equal(await response.body.text(), refused);
  }
  await server.close(0);
});

test("a body whose stated length is above the limit is rejected before it arrives", async () => {
  const server = await startTestServer({ maxBodyBytes: 1_000 });
  const socket = connect(server.port, "127.0.0.1");
  socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1001\r\n\r\n");
  const [head] = await once(socket, "data", { signal: AbortSignal.timeout(TIMEOUT_MS) }).finally(() =>
    socket.destroy(),
  );
  assert.match(String(head), /^HTTP\/1.1 400 /);
  await server.close(0);
});

test("a stream waits for a slow reader and ends with it", async () => {
  const ended = Promise.withResolvers<void>();
  let parts = 0;
  const server = await startHttpServer({
    handle: async () => ({
      status: 200,
      cacheStatus: "forebay",
      chunks: [
        (async function* () {
          try {
            for (;;) {
              parts++;
              yield Buffer.alloc(64 * 1024, " ");
            }
          } finally {
            ended.resolve();
          }
        })(),
      ],
    }),
  });
  const socket = connect(server.port, "127.0.0.1");
  socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
  await once(socket, "readable");
  let before = -1;
  while (before !== parts) {
    before = parts;
    for (let turn = 0; turn < 100; turn++) {
      await new Promise(setImmediate);
    }
  }
  assert.ok(parts < 1_000, `${parts} parts were made for a reader that reads nothing`);
  socket.destroy();
  await ended.promise;
  await server.close(0);
});

test("a client that disconnects while a stream is written is no error, with and without compression", async () => {
  for (const encoding of ["identity", "gzip"]) {
    const ended = Promise.withResolvers<void>();
    const endless = async function* () {
      try {
        for (;;) {
          yield Buffer.from(`"${Math.random()}",`.repeat(1_000));
        }
      } finally {
        ended.resolve();
      }
    };
    const server = await startHttpServer(
      createTestEndpoint({ methods: { endless: async () => ({ body: endless() }) }, maxResponseBytes: 1e9 }),
    );
    const socket = connect(server.port, "127.0.0.1");
    const body = call("endless");
    const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nAccept-Encoding: ${encoding}\r\n`;
    socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
    await once(socket, "data");
    socket.resetAndDestroy();
    await ended.promise;
    const { statusCode, body: other } = await send(server.url);
    await other.dump();
    assert.equal(statusCode, 200);
    assert.deepEqual(server.errors, []);
    await server.close(0);
  }
});
