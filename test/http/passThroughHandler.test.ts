import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect, createServer as createNetServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { request } from "undici";
import { PassThroughHandler } from "../../src/http/passThroughHandler.ts";
import { silent } from "../support/builders/silent.ts";
import { createTestEndpoint, startHttpServer } from "../support/servers/httpServer.ts";
import { listen } from "../support/servers/ports.ts";

const startTarget = async () => {
  const server = createServer((asked, response) => {
    const chunks: Buffer[] = [];
    asked.on("data", (chunk: Buffer) => chunks.push(chunk));
    asked.on("end", () => response.end(`${asked.method} ${asked.url} ${Buffer.concat(chunks)}`));
  });
  const port = await listen(server);
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { url: `http://127.0.0.1:${port}`, close };
};

const start = async (target: string, timeoutMs = 5_000) => {
  const telemetry = silent();
  const passthrough = new PassThroughHandler({ chain: "test", target, timeoutMs, telemetry });
  /** The reason of each failure. */
  const failures = async (): Promise<readonly unknown[]> => {
    const { values } = await telemetry.metrics.passThroughFailures.get();
    return values.flatMap(({ labels, value }) => Array.from({ length: value }, () => labels.reason));
  };
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

test("a WebSocket is not passed through, and its target is not connected", async (t) => {
  const target = await startRawTarget(t, () => {});
  const server = await start(target.url);
  t.after(() => server.close());
  for (const path of ["/base/feed", "/a", "/8453/a"]) {
    assert.match(await exchange(server.port, `GET ${path} HTTP/1.1\r\nHost: a\r\n${UPGRADE}\r\n`), /^HTTP\/1.1 404 /);
  }
  assert.equal(target.sockets.size, 0);
});

test("an unreachable target returns 502 without its name", async () => {
  const target = await startTarget();
  await target.close();
  const server = await start(target.url);
  const { statusCode, body } = await request(`${server.url}/health`);
  assert.equal(statusCode, 502);
  assert.doesNotMatch(await body.text(), /127\.0\.0\.1|ECONN/);
  assert.deepEqual(await server.failures(), ["unreachable"]);
  await server.close();
});

/** A target that answers each connection with these bytes, and records what it received. */
const startRawTarget = async (t: TestContext, answer: (socket: Socket, bytes: string) => void) => {
  const received: string[] = [];
  const sockets = new Set<Socket>();
  const server = createNetServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      received.push(String(bytes));
      answer(socket, String(bytes));
    });
  });
  const port = await listen(server);
  t.after(() => {
    for (const socket of sockets) {
      socket.destroy();
    }
    server.close();
  });
  return { url: `http://127.0.0.1:${port}`, received, sockets };
};

/** Sends bytes to the server, and returns all that it sends until it closes the connection. */
const exchange = async (port: number, bytes: string): Promise<string> => {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.on("data", (chunk) => {
    text += String(chunk);
  });
  socket.write(bytes);
  await once(socket, "close");
  return text;
};

const UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n";

test("hop-by-hop, Proxy-* and Connection-named headers are removed in both directions", async (t) => {
  const target = await startRawTarget(t, (socket) =>
    socket.write(
      "HTTP/1.1 200 OK\r\nConnection: x-one, keep-alive\r\nX-One: 1\r\nKeep-Alive: timeout=9\r\nProxy-Authenticate: Basic\r\n" +
        "Upgrade: h2c\r\nX-Two: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ),
  );
  const server = await start(target.url);
  t.after(() => server.close());
  const text = await exchange(
    server.port,
    "GET /a HTTP/1.1\r\nHost: a\r\nConnection: close, X-Secret\r\nX-Secret: s\r\nProxy-Authorization: Basic s\r\nTE: trailers\r\nX-Own: o\r\n\r\n",
  );
  assert.doesNotMatch(target.received.join(""), /x-secret|proxy-|\r\nte:|\r\nconnection: close, /i);
  assert.match(target.received.join(""), /\r\nx-own: o\r\n/i);
  assert.doesNotMatch(text, /x-one|keep-alive|proxy-|upgrade/i);
  assert.match(text, /\r\nx-two: 2\r\n/i);
  assert.equal(text.match(/transfer-encoding|content-length/gi)?.length, 1);
});

test("a response has one framing for HTTP/1.0 and 1.1 clients, whatever the target's", async (t) => {
  const framings = [
    "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "Content-Length: 2\r\n\r\nok",
    "Connection: close\r\n\r\nok",
  ];
  for (const framing of framings) {
    const target = await startRawTarget(t, (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\n${framing}`);
      if (framing.startsWith("Connection")) {
        socket.end();
      }
    });
    const server = await start(target.url);
    t.after(() => server.close());
    for (const version of ["1.0", "1.1"]) {
      const text = await exchange(server.port, `GET /a HTTP/${version}\r\nHost: a\r\nConnection: close\r\n\r\n`);
      const [head = "", body] = text.split("\r\n\r\n", 2);
      assert.ok((head.match(/transfer-encoding|content-length/gi)?.length ?? 0) <= 1, text);
      assert.match(body ?? "", version === "1.0" ? /^ok$/ : /ok/);
    }
  }
});

test("a body with chunks is framed for the target, and a DELETE with chunks is rejected", async (t) => {
  const target = await startRawTarget(t, (socket, bytes) => {
    if (bytes.endsWith("0\r\n\r\n")) {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
  });
  const server = await start(target.url);
  t.after(() => server.close());
  const body = "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
  for (const method of ["POST", "GET", "PUT"]) {
    assert.match(await exchange(server.port, `${method} /a HTTP/1.1\r\nHost: a\r\n${body}`), /^HTTP\/1.1 200 /, method);
  }
  assert.equal(target.received.join("").match(/transfer-encoding: chunked/gi)?.length, 3);
  assert.doesNotMatch(target.received.join(""), /content-length/i);
  assert.match(await exchange(server.port, `DELETE /a HTTP/1.1\r\nHost: a\r\n${body}`), /^HTTP\/1.1 411 /);
  assert.deepEqual(await server.failures(), ["length"]);
});

test("no path leaves the base of the target", async (t) => {
  const target = await startTarget();
  const server = await start(`${target.url}/inside`);
  t.after(async () => {
    await server.close();
    await target.close();
  });
  const ask = (path: string) => exchange(server.port, `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  const leaving = [
    "/..",
    "/../a",
    "/a/..",
    "/%2e%2e/a",
    "/.%2E/a",
    "/a/..%2fb",
    "/..\\a",
    "/..%5ca",
    "/..;x=1/a",
    "/%ff/../a",
  ];
  for (const path of leaving) {
    assert.match(await ask(path), /^HTTP\/1.1 400 /, path);
  }
  assert.equal((await server.failures()).length, leaving.length);
  assert.match(await ask("/a..b/...?x=/../y"), /GET \/inside\/a\.\.b\/\.\.\.\?x=\/\.\.\/y/);
});

test("a target that does not answer times out, before a response and within one", async (t) => {
  const silent = await startRawTarget(t, () => {});
  const server = await start(silent.url, 50);
  t.after(() => server.close());
  const close = "GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  assert.match(await exchange(server.port, close), /^HTTP\/1.1 504 /);
  assert.deepEqual(await server.failures(), ["timeout"]);

  const half = await startRawTarget(t, (socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"));
  const other = await start(half.url, 1_000);
  t.after(() => other.close());
  assert.match(await exchange(other.port, close), /\r\n\r\nhalf$/);
});

test("a client that disconnects ends the request to the target and is no failure", async (t) => {
  const asked = Promise.withResolvers<Socket>();
  const target = await startRawTarget(t, (socket) => asked.resolve(socket));
  const server = await start(target.url);
  t.after(() => server.close());
  const client = connect(server.port, "127.0.0.1");
  client.write("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
  const socket = await asked.promise;
  const closed = once(socket, "close");
  client.destroy();
  await closed;
  assert.deepEqual(await server.failures(), []);
});
