import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import { request as send } from "undici";
import { Access, type AccessOptions } from "../../src/access/access.ts";
import { RateLimits } from "../../src/access/rateLimits.ts";
import type { PassThrough } from "../../src/http/endpoint.ts";
import type { Reply } from "../../src/jsonrpc/call.ts";
import { DayBudget } from "../../src/telemetry/dayBudgets.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { KeyUsage } from "../../src/telemetry/usageLedger.ts";
import { until } from "../support/clients/until.ts";
import { createTestEndpoint, startHttpServer } from "../support/servers/httpServer.ts";

const json = { "content-type": "application/json" };
const call = (method: string, id = 1) => ({ jsonrpc: "2.0", id, method, params: [] });
const sha256 = (key: string): string => createHash("sha256").update(key).digest("hex");
const MISSING = "an API key is needed: header x-api-key, a bearer token, or the last part of the path";
const WRONG = "the API key is not valid";

/** Starts a server with these rules. The target of pass-through returns what it received. */
const start = async (
  t: TestContext,
  rules: Partial<AccessOptions>,
  http: Parameters<typeof startHttpServer>[1] = {},
) => {
  const telemetry = createTelemetry({ level: "silent" });
  const { metrics } = telemetry;
  const access = new Access({
    keys: [],
    trustedProxies: [],
    limits: new RateLimits({ telemetry }),
    metrics,
    usageOf: (name) => new KeyUsage(name),
    budgetOf: () => undefined,
    ...rules,
  });
  const passthrough: PassThrough = {
    web: (request, response) => {
      const { host: _, connection: __, ...headers } = request.headers;
      response.end(JSON.stringify({ method: request.method, target: request.url, headers }));
    },
    close: () => {},
  };
  const reply: Reply = { body: Buffer.from("1") };
  const endpoint = createTestEndpoint({ methods: { eth_one: async () => reply, eth_two: async () => reply } });
  const server = await startHttpServer(
    { ...endpoint, passthrough },
    {
      authenticate: (...args) => access.authenticate(...args),
      status: async () => "{}",
      telemetry,
      ...http,
    },
  );
  t.after(() => server.close(0));
  const byReason = async (counter: Pick<typeof metrics.accessRefused, "get">): Promise<Record<string, number>> =>
    Object.fromEntries((await counter.get()).values.map(({ labels, value }) => [labels.reason, value]));
  const refused = () => byReason(metrics.accessRefused);
  const charged = () => byReason(metrics.chargedCalls);
  const post = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
    const response = await send(server.url + path, {
      method: "POST",
      headers: { ...json, ...headers },
      body: JSON.stringify(body),
    });
    const text = await response.body.text();
    return { status: response.statusCode, headers: response.headers, body: text === "" ? undefined : JSON.parse(text) };
  };
  return { ...server, post, refused, charged };
};

test("a key is accepted in a header, a bearer token or the path, and required", async (t) => {
  const server = await start(t, {
    keys: [
      { name: "one", sha256: sha256("k1") },
      { name: "two", sha256: sha256("k2") },
    ],
  });
  const ways: readonly (readonly [path: string, headers: Record<string, string>])[] = [
    ["/", { "x-api-key": "k1" }],
    ["/base", { authorization: "Bearer k2" }],
    ["/base/k1", {}],
    ["/base/k2/", {}],
    ["/8453/k2?x", {}],
    ["/k1", {}],
  ];
  for (const [path, headers] of ways) {
    const { status, body } = await server.post(path, call("eth_one"), headers);
    assert.deepEqual([status, body.result], [200, 1], path);
  }
  const wrong: readonly (readonly [path: string, headers: Record<string, string>, message: string])[] = [
    ["/", {}, MISSING],
    ["/base", {}, MISSING],
    ["/base/v1/blobs", {}, MISSING],
    ["/", { "x-api-key": "K1" }, WRONG],
    ["/", { authorization: "Bearer k3" }, WRONG],
    ["/", { authorization: "Basic k1" }, MISSING],
    ["/base/k3", {}, WRONG],
    ["/k3", {}, WRONG],
    ["/", { "x-api-key": sha256("k1") }, WRONG],
  ];
  for (const [path, headers, message] of wrong) {
    const { status, body, headers: returned } = await server.post(path, call("eth_one", 7), headers);
    assert.deepEqual([status, body], [401, { jsonrpc: "2.0", id: 7, error: { code: -32001, message } }], path);
    assert.ok(returned["x-request-id"]);
  }
  const batch = await server.post("/", [call("eth_one", 7)]);
  assert.deepEqual([batch.status, batch.body.id], [401, null]);
  const long = await server.post("/", { ...call("eth_one", 7), params: ["x".repeat(20_000)] });
  assert.deepEqual([long.status, long.body.id], [401, null]);
  assert.equal((await server.refused()).key, wrong.length + 2);
});

test("requests that are passed through contain no copy of a key", async (t) => {
  const server = await start(t, {
    keys: [
      { name: "one", sha256: sha256("k1") },
      { name: "two", sha256: sha256("k2") },
    ],
  });
  const get = async (path: string, headers: Record<string, string | string[]> = {}) => {
    const response = await send(server.url + path, { method: "GET", headers });
    assert.equal(response.statusCode, 200, path);
    return response.body.text();
  };
  const own = { authorization: "Bearer of-the-target", accept: "a/b", cookie: "a=b" };
  const passed = (target: string, headers: object = {}) => JSON.stringify({ method: "GET", target, headers });
  const ways: readonly (readonly [path: string, headers: Record<string, string | string[]>, expected: string])[] = [
    ["/base/k1/v1/blobs?a=b", {}, passed("/v1/blobs?a=b")],
    ["/base/v1", { "x-api-key": "k1" }, passed("/v1")],
    ["/base/v1", { "x-api-key": ["k1", "k1"] }, passed("/v1")],
    ["/base/v1", { authorization: "Bearer k1" }, passed("/v1")],
    ["/base/k2/v1", { "x-api-key": "k1", authorization: "bearer k2" }, passed("/v1")],
    ["/base/k1/v1/k1/x?key=k1&a=b", {}, passed("/v1/x?a=b")],
    ["/base/%6b1/v1?k1", {}, passed("/v1")],
    ["/base/k1/v1", { "x-api-key": "other", referer: "https://a.example/base/k1", cookie: "key=k1" }, passed("/v1")],
    ["/base/k1/v1", own, passed("/v1", own)],
  ];
  for (const [path, headers, expected] of ways) {
    assert.equal(await get(path, headers), expected, `${path} ${JSON.stringify(headers)}`);
  }
});

test("passed-through requests, pages and all paths need a key, and preflights are answered without one", async (t) => {
  const server = await start(t, { keys: [{ name: "one", sha256: sha256("k1") }] });
  const get = async (path: string, headers: Record<string, string> = {}, method: "GET" | "OPTIONS" = "GET") => {
    const response = await send(server.url + path, { method, headers });
    return { status: response.statusCode, text: await response.body.text() };
  };
  for (const path of ["/", "/status.json", "/base/v1", "/other"]) {
    assert.equal((await get(path)).status, 401, path);
  }
  assert.deepEqual(await get("/", { "x-api-key": "k1" }), { status: 200, text: '{"name":"forebay"}' });
  assert.deepEqual(await get("/k1"), { status: 200, text: '{"name":"forebay"}' });
  assert.deepEqual(await get("/k1/status.json"), { status: 200, text: "{}" });
  for (const path of ["/base", "/base/k1", "/base/v1", "/other/path"]) {
    assert.deepEqual(await get(path, {}, "OPTIONS"), { status: 204, text: "" }, path);
  }
});

test("method lists apply to all clients and to one key, for each call of a batch", async (t) => {
  const server = await start(t, {
    deny: ["eth_two"],
    keys: [
      { name: "all", sha256: sha256("k1") },
      { name: "few", sha256: sha256("k2"), allow: ["eth_one"] },
    ],
  });
  const ask = async (key: string) =>
    (await server.post("/", [call("eth_one"), call("eth_two", 2), call("web3_x", 3)], { "x-api-key": key })).body;
  const denied = (id: number, method: string) => ({
    jsonrpc: "2.0",
    id,
    error: { code: -32601, message: `the method ${method} is not allowed here` },
  });
  const one = { jsonrpc: "2.0", id: 1, result: 1 };
  const other = { jsonrpc: "2.0", id: 3, result: "forwarded web3_x" };
  assert.deepEqual(await ask("k1"), [one, denied(2, "eth_two"), other]);
  assert.deepEqual(await ask("k2"), [one, denied(2, "eth_two"), denied(3, "web3_x")]);
  assert.equal((await server.post("/", call("eth_two"), { "x-api-key": "k1" })).status, 200);
  assert.equal((await server.refused()).method, 4);
});

test("limits count by key and by address, for each call of a batch", async (t) => {
  const server = await start(t, {
    keys: [
      { name: "one", sha256: sha256("k1") },
      { name: "big", sha256: sha256("k2"), limit: { calls: 100, seconds: 60 } },
    ],
    limitPerKey: { calls: 2, seconds: 60 },
    limitPerAddress: { calls: 6, seconds: 60 },
    trustedProxies: ["127.0.0.1"],
  });
  const from = (key: string, address: string) => ({ "x-api-key": key, "x-forwarded-for": address });
  const batch = (length: number) => Array.from({ length }, (_, id) => call("eth_one", id));
  const results = async (key: string, address: string, length: number): Promise<number> => {
    const { status, body } = await server.post("/", batch(length), from(key, address));
    assert.equal(status, 200);
    return body.filter((item: object) => "result" in item).length;
  };
  assert.equal(await results("k1", "203.0.113.1", 3), 2);
  const single = await server.post("/", call("eth_one"), from("k1", "203.0.113.2"));
  assert.equal(single.status, 429);
  assert.equal(single.body.error.code, -32005);
  assert.ok(Number(single.headers["retry-after"]) > 0);
  assert.equal(await results("k2", "203.0.113.3", 8), 6);
  assert.equal(await results("k2", "203.0.113.4", 6), 6);
  // Addresses of one /64 are one client.
  assert.equal(await results("k2", "2001:db8::1", 4), 4);
  assert.equal(await results("k2", "2001:db8::ffff:2", 4), 2);
});

test("a key that has spent its units is refused for each call of a batch, and its limits of calls stay", async (t) => {
  const row = new KeyUsage("row");
  const budget = new DayBudget(100, row, () => Date.parse("2026-11-26T23:59:00Z"));
  const server = await start(t, {
    keys: [
      { name: "one", sha256: sha256("k1"), limit: { unitsPerDay: 100 } },
      { name: "two", sha256: sha256("k2"), limit: { seconds: 60, unitsPerDay: 100 } },
      { name: "three", sha256: sha256("k3") },
    ],
    limitPerKey: { calls: 3, seconds: 60 },
    budgetOf: (name) => (name === "one" ? budget : undefined),
  });
  const post = (key: string, body: unknown = call("eth_one")) => server.post("/", body, { "x-api-key": key });
  assert.equal((await post("k1")).status, 200);
  budget.spend(100);
  const spent = await post("k1", call("eth_one", 7));
  const data = { unitsPerDay: 100, spentUnits: 100, endsAt: "2026-11-27T00:00:00.000Z" };
  const message = "the 100 units of today are spent: wait until 00:00 UTC";
  assert.deepEqual([spent.status, spent.headers["retry-after"]], [429, "60"]);
  assert.deepEqual(spent.body, { jsonrpc: "2.0", id: 7, error: { code: -32_005, message, data } });
  const batch = await post("k1", [call("eth_one"), call("eth_two", 2)]);
  assert.deepEqual(
    [batch.status, batch.body.map(({ error }: { error: { code: number } }) => error.code)],
    [200, [-32_005, -32_005]],
  );
  assert.equal((await server.refused()).units, 3);
  assert.equal((await server.charged()).units, 3);
  // `unitsPerDay` alone leaves the limit of all keys. With `seconds`, the key has one of its own: 100 calls.
  const statuses = async (key: string) =>
    (await Promise.all([1, 2, 3, 4].map(() => post(key)))).map(({ status }) => status);
  assert.deepEqual((await statuses("k3")).toSorted(), [200, 200, 200, 429]);
  assert.deepEqual(await statuses("k2"), [200, 200, 200, 200]);
});

test("parse errors, invalid items, forbidden methods and wrong keys count against the limits", async (t) => {
  const limit = { calls: 3, seconds: 60 };
  const rules = { deny: ["eth_two"], limitPerAddress: limit, trustedProxies: ["127.0.0.1"] };
  const server = await start(t, rules);
  const keyed = await start(t, { ...rules, keys: [{ name: "one", sha256: sha256("k1") }] });
  const key = { "x-api-key": "k1" };
  const ways: readonly (readonly [
    target: typeof server,
    body: unknown,
    count: number,
    headers: Record<string, string>,
  ])[] = [
    [server, "no JSON-RPC", 1, {}],
    [server, { jsonrpc: "1.0" }, 1, {}],
    [server, [1, {}, { id: 1 }], 3, {}],
    [server, call("eth_two"), 1, {}],
    [server, "x".repeat(20_000), 1, {}],
    [server, call("eth_one"), 1, { "content-type": "text/plain" }],
    [keyed, call("eth_one"), 1, { "x-api-key": "wrong" }],
    [keyed, call("eth_one"), 1, {}],
  ];
  for (const [index, [target, body, count, headers]] of ways.entries()) {
    const from = { "x-forwarded-for": `203.0.113.${index}` };
    for (let sent = 0; sent < limit.calls; sent += count) {
      await target.post("/", body, { ...from, ...headers });
    }
    const { status } = await target.post("/", call("eth_one"), { ...from, ...key });
    assert.equal(status, 429, JSON.stringify(body));
  }
  const charged = await server.charged();
  assert.deepEqual([charged.invalid, charged.method], [15, 3]);
  assert.equal((await keyed.charged()).key, 6);
});

test("connections of one address are limited, and those of a trusted proxy are not", async (t) => {
  const server = await start(t, {}, { maxConnectionsPerAddress: 2 });
  const open = async () => {
    const socket = connect(server.port, "127.0.0.1");
    t.after(() => socket.destroy());
    const body = JSON.stringify(call("eth_one"));
    const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    socket.write(head + body);
    const [bytes] = await once(socket, "data");
    return { socket, text: String(bytes) };
  };
  const first = await open();
  assert.match(first.text, /^HTTP\/1.1 200 /);
  assert.match((await open()).text, /^HTTP\/1.1 200 /);
  const { text } = await open();
  assert.match(text, /^HTTP\/1.1 429 /);
  assert.match(text, /"id":1,"error":{"code":-32005,"message":"too many connections: at most 2 from one address"}/);
  assert.equal((await server.refused()).connections, 1);
  first.socket.destroy();
  await until(async () => {
    const { socket, text: answer } = await open();
    socket.destroy();
    return answer.startsWith("HTTP/1.1 200 ");
  }, "a closed connection is not counted");

  const proxied = await start(
    t,
    {},
    { maxConnectionsPerAddress: 1, isTrustedProxy: (address) => address === "127.0.0.1" },
  );
  const sockets = [1, 2, 3].map(() => connect(proxied.port, "127.0.0.1"));
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  assert.equal((await proxied.post("/", call("eth_one"))).status, 200);
  for (const socket of sockets) {
    socket.destroy();
  }
});
