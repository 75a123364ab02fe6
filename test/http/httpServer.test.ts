import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { request as send } from "undici";
import { call, json, LARGE, startHttpServer, startTestServer } from "../support/servers/httpServer.ts";

test("POST is answered at every path of the chain with the expected headers", async () => {
  const server = await startTestServer();
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
      "Cache-Status, x-forebay-pending, x-forebay-head, x-forebay-view, x-forebay-proof, x-forebay-units, x-request-id, Retry-After",
    );
    assert.match(String(headers["x-request-id"]), /^[\w-]+$/);
  }
  await server.close(0);
});

test("an error of one call has its status and Retry-After", async () => {
  const server = await startTestServer();
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
  const server = await startTestServer();
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
  const server = await startTestServer();
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
  const server = await startTestServer();
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
  const server = await startTestServer({ corsOrigins: ["https://a.example"] });
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
  const server = await startTestServer();
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
  const server = await startTestServer();
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
  const server = await startTestServer();
  await (await send(server.url, { method: "POST", headers: json, body: call("one") })).body.dump();
  await new Promise(setImmediate);
  const text = await server.registry.metrics();
  assert.match(text, /forebay_http_responses_total\{status="200"\} 1/);
  await server.close(0);
});
