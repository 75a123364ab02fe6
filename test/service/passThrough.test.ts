import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import { type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
import { metric } from "../support/clients/rpc.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { listen } from "../support/servers/ports.ts";
import { createService, type Service } from "../support/servers/service.ts";

/** A server that answers JSON-RPC at every path, as some nodes do. It records the bodies that it gets. */
const startTarget = async (t: TestContext) => {
  const bodies: string[] = [];
  const server = createServer((asked, response) => {
    const chunks: Buffer[] = [];
    asked.on("data", (chunk: Buffer) => chunks.push(chunk));
    asked.on("end", () => {
      bodies.push(Buffer.concat(chunks).toString());
      response.end("from the target");
    });
  });
  const port = await listen(server);
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${port}`, bodies };
};

const start = async (t: TestContext) => {
  const target = await startTarget(t);
  const node = await createFakeNode();
  const service = await createService(
    { name: "main", nodes: [{ url: node.url }], passthrough: target.url },
    { access: { deny: ["eth_sendRawTransaction"] }, server: { maxBodyBytes: 100_000 } },
  );
  t.after(async () => {
    await service.close();
    await node.close();
  });
  return { service, target };
};

type Body = string | Buffer | ReadableStream<Uint8Array>;

const send = async ({ url }: Service, body: Body, options: { path?: string; verb?: string; headers?: object } = {}) => {
  const { path = "/main/rpc", verb = "POST", headers = {} } = options;
  const response = await fetch(url + path, {
    method: verb,
    headers: { "content-type": "text/plain", ...headers },
    body,
    ...(body instanceof ReadableStream && { duplex: "half" }),
  });
  return { status: response.status, text: await response.text() };
};

const inParts = (...parts: readonly string[]): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start: (controller) => {
      for (const part of parts) {
        controller.enqueue(Buffer.from(part));
      }
      controller.close();
    },
  });

const DENIED = '{"jsonrpc":"2.0","id":7,"method":"eth_sendRawTransaction","params":["0x00"]}';

test("JSON-RPC is not passed through, in whatever form a target might read it", async (t) => {
  const { service, target } = await start(t);
  const forms: readonly Body[] = [
    DENIED,
    `\ufeff \r\n${DENIED}`,
    `[{"a":1},${DENIED}]`,
    '{"method":"admin_addPeer"}',
    // Go reads names of members without case, and the last of duplicates counts.
    '{"method":1,"METHOD":"admin_addPeer"}',
    '{"m\\u0065thod":"admin_addPeer"}',
    // Not JSON. Some parsers accept comments, single quotes, several documents, or a comma at the end.
    `/* first */ ${DENIED}`,
    "{'method':'admin_addPeer'}",
    `{"a":1}\n${DENIED}`,
    '{"method":"admin_addPeer",}',
    Buffer.from(DENIED, "utf16le"),
    Buffer.from(DENIED.replace("method", "m\\u0065thod"), "utf16le"),
    '{"\\u006D\\u0065\\u0074\\u0048\\u006f\\u0064":"admin_addPeer"}',
    inParts(" ", " {", DENIED.slice(1, 30), DENIED.slice(30)),
  ];
  for (const body of forms) {
    const { status, text } = await send(service, body);
    assert.equal(status, 404, text);
    assert.equal(JSON.parse(text).error.code, -32600);
    assert.match(text, /no JSON-RPC is served or passed through at this path: send it to \/main/);
  }
  for (const path of ["/main//", "/main/%2e/", "/rpc", "//", "/main/?a=b/c/"]) {
    assert.doesNotMatch((await send(service, DENIED, { path })).text, /from the target/, path);
  }
  assert.equal((await send(service, DENIED, { verb: "PUT" })).status, 404);
  const { text } = await send(service, DENIED);
  assert.equal(JSON.parse(text).id, 7);
  assert.deepEqual(target.bodies, []);
});

test("the id of a long refused body is not read", async (t) => {
  const { service } = await start(t);
  const { status, text } = await send(service, DENIED.replace("0x00", "00".repeat(10_000)));
  assert.deepEqual([status, JSON.parse(text).id], [404, null]);
});

test("a body that is passed through is not encoded, and is limited if it may be JSON", async (t) => {
  const { service, target } = await start(t);
  const encoded = await send(service, gzipSync(DENIED), { headers: { "content-encoding": "gzip" } });
  assert.equal(encoded.status, 415);
  assert.match(encoded.text, /Content-Encoding/);
  const large = await send(service, `{"a":"${"x".repeat(200_000)}"}`);
  assert.equal(large.status, 400);
  assert.match(large.text, /larger than 100000 bytes/);
  assert.deepEqual(target.bodies, []);
});

test("what is not JSON-RPC is passed through unchanged", async (t) => {
  const { service, target } = await start(t);
  const bodies = [
    "",
    "   ",
    "hello",
    `method ${"x".repeat(300_000)}`,
    '{"query":"{ blocks { number } }","variables":{"method":"eth_call"}}',
    '["0x1","method"]',
    '{"method":{"nested":1}}',
    "{not json}",
  ];
  for (const body of bodies) {
    assert.deepEqual(await send(service, body), { status: 200, text: "from the target" }, body.slice(0, 50));
  }
  const parts = await send(service, inParts("  \n", "he", "llo"));
  assert.equal(parts.status, 200);
  assert.equal((await send(service, inParts())).status, 200);
  assert.deepEqual(target.bodies, [...bodies, "  \nhello", ""]);
});

test("JSON-RPC that is not passed through counts against the limit of its client", async (t) => {
  const target = await startTarget(t);
  const node = await createFakeNode();
  const service = await createService(
    { name: "main", nodes: [{ url: node.url }], passthrough: target.url },
    { access: { limitPerAddress: { calls: 3, seconds: 600 } } },
  );
  t.after(async () => {
    await service.close();
    await node.close();
  });
  for (let at = 0; at < 3; at++) {
    assert.equal((await send(service, DENIED)).status, 404);
  }
  const headers = { "content-type": "application/json" };
  const limited = await send(service, DENIED.replace("sendRawTransaction", "chainId"), { path: "/main", headers });
  assert.equal(limited.status, 429);
  assert.equal(await metric(service.opsUrl, "forebay_access_charged_total", 'reason="invalid"'), 3);
  assert.equal(await metric(service.opsUrl, "forebay_access_refused_total", 'reason="passThrough"'), 3);
});

const startLimited = async (t: TestContext, calls: number) => {
  const target = await startTarget(t);
  const node = await createFakeNode();
  const service = await createService(
    { name: "main", nodes: [{ url: node.url }], passthrough: target.url },
    { access: { limitPerAddress: { calls, seconds: 600 } } },
  );
  t.after(async () => {
    await service.close();
    await node.close();
  });
  return { service, target };
};

const chainId = (service: Service) =>
  send(service, '{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}', {
    path: "/main",
    headers: { "content-type": "application/json" },
  });

test("a request that is passed through counts against the limit of its address", async (t) => {
  const { service, target } = await startLimited(t, 4);
  assert.equal((await fetch(`${service.url}/main/health`)).status, 200);
  assert.equal((await send(service, "plain text")).status, 200);
  assert.equal((await send(service, inParts("x".repeat(70_000), "y"))).status, 200);
  assert.equal((await chainId(service)).status, 200);
  assert.deepEqual(
    [
      (await fetch(`${service.url}/main/health`)).status,
      (await send(service, "plain text")).status,
      (await send(service, inParts("x".repeat(70_000), "y"))).status,
      (await chainId(service)).status,
    ],
    [429, 429, 429, 429],
  );
  assert.equal(target.bodies.length, 3);
  assert.equal(await metric(service.opsUrl, "forebay_access_refused_total", 'reason="rate"'), 4);
});

test("TRACE is refused at every path, and never reaches the target", async (t) => {
  const { service, target } = await start(t);
  for (const path of ["/", "/main", "/main/", "/main/rpc", "/other"]) {
    const asked = request(service.url + path, { method: "TRACE", headers: { cookie: "secret" } });
    asked.end();
    const [response]: IncomingMessage[] = await once(asked, "response");
    assert.ok(response !== undefined);
    response.resume();
    assert.equal(response.statusCode, 405, path);
    assert.doesNotMatch(response.headers.allow ?? "", /TRACE/);
    assert.notEqual(response.headers.allow, undefined, path);
  }
  assert.deepEqual(target.bodies, []);
});

test("no response of the target tells its address or the key in its path", async (t) => {
  const target = createServer((asked, response) => {
    const own = `http://${asked.headers.host}/v2/SECRET`;
    const [, status = "", header = "", form = ""] = asked.url?.match(/^\/v2\/SECRET\/(\d+)\/([\w-]*)\/(\w*)/) ?? [];
    const values: Record<string, string> = {
      whole: `${own}/next`,
      path: "/v2/SECRET/next",
      other: "https://other.example/a",
    };
    const value = values[form] ?? "";
    const text = header === "refresh" ? `0; url=${value}` : header === "link" ? `<${value}>; rel=next` : value;
    response.writeHead(Number(status), { "content-type": "text/plain", ...(value !== "" && { [header]: text }) });
    response.end(status === "200" ? "open" : `${own} refuses this`);
  });
  const port = await listen(target);
  const node = await createFakeNode();
  const passthrough = `http://127.0.0.1:${port}/v2/SECRET`;
  const service = await createService({ name: "main", nodes: [{ url: node.url }], passthrough });
  t.after(async () => {
    await service.close();
    await node.close();
    target.closeAllConnections();
    target.close();
  });
  const get = (path: string) => fetch(`${service.url}/main/${path}`, { redirect: "manual" });
  for (const header of ["location", "content-location", "refresh", "link"]) {
    for (const form of ["whole", "path"]) {
      const response = await get(`200/${header}/${form}`);
      assert.equal(response.headers.get(header), null, `${header} ${form}`);
      assert.equal(await response.text(), "open");
    }
    assert.match((await get(`200/${header}/other`)).headers.get(header) ?? "", /https:\/\/other\.example\/a/);
  }
  for (const status of [401, 403]) {
    const response = await get(`${status}/none/none`);
    assert.equal(response.status, status);
    assert.equal(await response.text(), "the target of this path refused the request\n");
  }
});
