import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { test } from "node:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { request as send } from "undici";
import type { EndpointRequest } from "../../src/http/endpoint.ts";
import type { Reply } from "../../src/jsonrpc/call.ts";
import { RpcError } from "../../src/jsonrpc/rpcError.ts";
import { createTestEndpoint, startHttpServer } from "../support/servers/httpServer.ts";

const json = { "content-type": "application/json" };
const call = (method: string, params: unknown[] = []): string =>
  JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
const LARGE = `"${"forebay ".repeat(1_000)}"`;

const reply = (text: string): Reply => ({ body: Buffer.from(text) });
const streamed = (parts: number, failAt = Number.POSITIVE_INFINITY): Reply => ({
  body: (async function* () {
    for (let part = 0; part < parts; part++) {
      if (part === failAt) {
        throw new Error("broken on the way");
      }
      yield Buffer.from(part === 0 ? "[0" : `,${part}`);
    }
    yield Buffer.from("]");
  })(),
});

const start = (options: Parameters<typeof startHttpServer>[1] = {}) =>
  startHttpServer(
    createTestEndpoint({
      methods: {
        one: async () => reply("1"),
        large: async () => reply(LARGE),
        streamed: async () => streamed(5_000),
        broken: async () => streamed(5_000, 2_500),
        busy: async () => {
          throw new RpcError(-32603, "busy", { status: 503, retryAfterSeconds: 2 });
        },
      },
    }),
    options,
  );

test("POST is answered at every path of the chain with the expected headers", async () => {
  const server = await start();
  for (const path of ["/", "", "/?a=b", "/base", "/base/", "/8453", "/8453/?x"]) {
    const { statusCode, headers, body } = await send(server.url + path, {
      method: "POST",
      headers: { ...json, origin: "https://a.example" },
      body: call("one"),
    });
    assert.equal(statusCode, 200);
    assert.equal(await body.text(), '{"jsonrpc":"2.0","id":1,"result":1}');
    assert.equal(headers["content-type"], "application/json");
    assert.equal(headers["cache-status"], "forebay; hit; detail=local");
    assert.equal(headers["access-control-allow-origin"], "*");
    assert.equal(
      headers["access-control-expose-headers"],
      "Cache-Status, x-forebay-pending, x-request-id, Retry-After",
    );
    assert.match(String(headers["x-request-id"]), /^[\w-]+$/);
  }
  await server.close(0);
});

test("an error of one call has its status and Retry-After", async () => {
  const server = await start();
  const { statusCode, headers, body } = await send(server.url, { method: "POST", headers: json, body: call("busy") });
  assert.equal(statusCode, 503);
  assert.equal(headers["retry-after"], "2");
  assert.equal(await body.text(), '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"busy"}}');
  const batch = await send(server.url, { method: "POST", headers: json, body: `[${call("busy")}]` });
  assert.equal(batch.statusCode, 200);
  await batch.body.dump();
  await server.close(0);
});

test("notifications alone return 204 without a body", async () => {
  const server = await start();
  const { statusCode, headers, body } = await send(server.url, {
    method: "POST",
    headers: json,
    body: '[{"jsonrpc":"2.0","method":"one"}]',
  });
  assert.equal(statusCode, 204);
  assert.equal(await body.text(), "");
  assert.equal(headers["content-length"], undefined);
  await server.close(0);
});

test("methods, paths and the page at /", async () => {
  const server = await start();
  const ask = async (method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE" | "OPTIONS", path: string) => {
    const { statusCode, headers, body } = await send(server.url + path, { method });
    return { statusCode, allow: headers.allow, text: await body.text() };
  };
  assert.deepEqual(await ask("GET", "/"), { statusCode: 200, allow: undefined, text: '{"name":"forebay"}' });
  assert.deepEqual(await ask("HEAD", "/"), { statusCode: 200, allow: undefined, text: "" });
  assert.equal((await ask("PUT", "/")).allow, "POST, GET, HEAD, OPTIONS");
  assert.equal((await ask("GET", "/base")).statusCode, 405);
  assert.equal((await ask("DELETE", "/base")).allow, "POST, OPTIONS");
  assert.equal((await ask("GET", "/other")).statusCode, 404);
  assert.equal((await ask("POST", "/base/other")).statusCode, 404);
  assert.equal((await ask("OPTIONS", "/base")).statusCode, 204);
  await server.close(0);
});

test("only unencoded JSON is accepted, with any content-type parameters", async () => {
  const server = await start();
  const status = async (headers: Record<string, string>) => {
    const { statusCode, body } = await send(server.url, { method: "POST", headers, body: call("one") });
    await body.dump();
    return statusCode;
  };
  const types = [
    "application/json; charset=latin1",
    "Application/JSON ;x",
    "application/json-rpc",
    "application/jsonrequest",
  ];
  for (const type of types) {
    assert.equal(await status({ "content-type": type }), 200, type);
  }
  for (const type of ["text/plain", "application/jsonp", "application/x-www-form-urlencoded"]) {
    assert.equal(await status({ "content-type": type }), 415, type);
  }
  assert.equal(await status({}), 415);
  assert.equal(await status({ ...json, "content-encoding": "gzip" }), 415);
  await server.close(0);
});

test("CORS: a list of origins, with credentials", async () => {
  const server = await start({ corsOrigins: ["https://a.example"] });
  const preflight = async (origin: string) => {
    const { headers, body } = await send(server.url, {
      method: "OPTIONS",
      headers: {
        origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type,x-a",
      },
    });
    await body.dump();
    return headers;
  };
  const allowed = await preflight("https://a.example");
  assert.equal(allowed["access-control-allow-origin"], "https://a.example");
  assert.equal(allowed["access-control-allow-credentials"], "true");
  assert.equal(allowed["access-control-allow-headers"], "content-type,x-a");
  assert.equal(allowed.vary, "Origin");
  assert.equal((await preflight("https://b.example"))["access-control-allow-origin"], undefined);
  await server.close(0);
});

test("large responses are compressed as the client accepts, small ones are not", async () => {
  const server = await start();
  const ask = async (method: string, accept: string) => {
    const headers = { ...json, "accept-encoding": accept };
    const response = await send(server.url, { method: "POST", headers, body: call(method) });
    return { encoding: response.headers["content-encoding"], bytes: Buffer.from(await response.body.arrayBuffer()) };
  };
  const expected = `{"jsonrpc":"2.0","id":1,"result":${LARGE}}`;
  const gzip = await ask("large", "gzip, deflate");
  assert.equal(gzip.encoding, "gzip");
  assert.equal(gunzipSync(gzip.bytes).toString(), expected);
  const brotli = await ask("large", "gzip;q=0.5, br");
  assert.equal(brotli.encoding, "br");
  assert.equal(brotliDecompressSync(brotli.bytes).toString(), expected);
  const plain = await ask("large", "gzip;q=0, identity");
  assert.equal(plain.encoding, undefined);
  assert.equal(plain.bytes.toString(), expected);
  assert.equal((await ask("one", "gzip, br")).encoding, undefined);
  const stream = await ask("streamed", "gzip");
  assert.equal(stream.encoding, "gzip");
  assert.equal(JSON.parse(gunzipSync(stream.bytes).toString()).result.length, 5_000);
  await server.close(0);
});

test("a stream that fails breaks the connection", async () => {
  const server = await start();
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
  const server = await start({ maxBodyBytes: 1_000 });
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

test("a client that disconnects aborts the request's signal", async () => {
  const asked = Promise.withResolvers<EndpointRequest>();
  const server = await startHttpServer({
    handle: (_, request) => {
      asked.resolve(request);
      return new Promise(() => {});
    },
  });
  const socket = connect(server.port, "127.0.0.1");
  const body = call("one");
  socket.write(
    `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  const { signal } = await asked.promise;
  assert.equal(signal.aborted, false);
  socket.destroy();
  await once(signal, "abort");
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

test("an incomplete body is not answered", async () => {
  const server = await start();
  const socket = connect(server.port, "127.0.0.1");
  socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{");
  await once(socket, "connect");
  socket.resetAndDestroy();
  const { statusCode, body } = await send(server.url, { method: "POST", headers: json, body: call("one") });
  assert.equal(statusCode, 200);
  await body.dump();
  await server.close(0);
});

test("a failing endpoint is an internal error, and only the log has the cause", async () => {
  const failure = new TypeError("secret");
  const server = await startHttpServer({
    handle: async () => {
      throw failure;
    },
  });
  const { statusCode, body } = await send(server.url, { method: "POST", headers: json, body: "{}" });
  assert.equal(statusCode, 200);
  assert.equal(await body.text(), '{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Internal error"}}');
  assert.deepEqual(server.errors, [failure]);
  await server.close(0);
});

test("a POST that offers a protocol upgrade is answered", async () => {
  const server = await start();
  const socket = connect(server.port, "127.0.0.1");
  const body = call("one");
  socket.write(
    `POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  const [bytes] = await once(socket, "data");
  assert.match(String(bytes), /^HTTP\/1.1 200 /);
  socket.destroy();
  await server.close(0);
});

test("requests are counted", async () => {
  const server = await start();
  await (await send(server.url, { method: "POST", headers: json, body: call("one") })).body.dump();
  await new Promise(setImmediate);
  const text = await server.registry.metrics();
  assert.match(text, /forebay_http_responses_total\{status="200"\} 1/);
  assert.match(text, /forebay_request_bytes_count 1/);
  assert.match(text, /forebay_response_bytes_sum 35/);
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
