import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { readArguments, readConfig } from "../../src/config/readConfig.ts";
import { ConfigError, createForebay, type ForebayConfig, ProviderRpcError } from "../../src/library/library.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { freePort } from "../support/servers/ports.ts";
import { startRedis } from "../support/servers/redis.ts";

const KEY = "wallet-key-of-this-test";
const ORIGIN = "http://forebay.test";
const JSON_TYPE = { "content-type": "application/json" };

const start = async (t: TestContext, config: ForebayConfig) => {
  const forebay = await createForebay({ log: { level: "silent" }, ...config });
  t.after(() => forebay.close());
  await forebay.ready;
  return forebay;
};

const startNode = async (t: TestContext, ...options: Parameters<typeof createFakeNode>) => {
  const node = await createFakeNode(...options);
  t.after(() => node.close());
  return node;
};

const post = (path: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Request =>
  new Request(ORIGIN + path, {
    method: "POST",
    headers: { ...JSON_TYPE, ...headers },
    body: JSON.stringify(body),
  });

const call = (method: string, params: readonly unknown[] = [], id = 1) => ({ jsonrpc: "2.0", id, method, params });

test("requests go to the chain by its name or chain id, and errors are those of EIP-1193", async (t) => {
  const one = await startNode(t, { chain: createFakeChain({ chainId: 901 }) });
  const other = await startNode(t, { chain: createFakeChain({ chainId: 902 }) });
  const forebay = await start(t, {
    chains: [
      { name: "one", nodes: [{ url: one.url }] },
      { name: "other", nodes: [{ url: other.url }] },
    ],
  });
  assert.deepEqual(forebay.chains, ["one", "other"]);
  assert.deepEqual([forebay.url, forebay.opsUrl], [undefined, undefined]);
  for (const [name, chainId] of [
    ["one", "0x385"],
    [901, "0x385"],
    ["other", "0x386"],
    ["902", "0x386"],
  ] as const) {
    assert.equal(await forebay.chain(name).request({ method: "eth_chainId" }), chainId);
  }
  await assert.rejects(forebay.request({ method: "eth_chainId" }), { code: 4901, message: /one, other/ });
  await assert.rejects(forebay.chain("third").request({ method: "eth_chainId" }), { code: 4901, message: /third/ });

  const { request } = forebay.chain("one");
  one.faults.error = { code: 3, message: "execution reverted", data: "0x08c379a0" };
  await assert.rejects(request({ method: "eth_call", params: [{ to: `0x${"1".repeat(40)}` }, "0x1"] }), (error) => {
    assert.ok(error instanceof ProviderRpcError);
    assert.deepEqual([error.code, error.message, error.data], [3, "execution reverted", "0x08c379a0"]);
    return true;
  });
  await assert.rejects(request({ method: "admin_peers" }), { name: "ProviderRpcError", code: -32_601 });
  await assert.rejects(request({ method: "eth_getBalance", params: ["0x1"] }), { code: -32_602, data: undefined });
  await assert.rejects(request({ method: "eth_getBalance", params: [1n] }), { code: -32_602 });
  await assert.rejects(request({ method: "eth_subscribe", params: ["newHeads"] }), { code: -32_601 });
});

test("close ends requests in flight, and those that follow", async (t) => {
  const node = await startNode(t);
  const forebay = await start(t, { chains: [{ name: "only", nodes: [{ url: node.url }] }] });
  Object.assign(node.faults, { answer: "hang", methods: ["eth_getBalance"] });
  const asked = node.asked("eth_getBalance");
  const params = [`0x${"1".repeat(40)}`, "0x1"];
  const ended = assert.rejects(forebay.request({ method: "eth_getBalance", params }), { code: 4900 });
  const fetched = assert.rejects(forebay.fetch(post("/", call("eth_getBalance", params))));
  await asked;
  await Promise.all([forebay.close(), ended, fetched]);
  await forebay.close();
  await assert.rejects(forebay.request({ method: "eth_chainId" }), { code: 4900 });
  await assert.rejects(forebay.fetch(post("/", call("eth_chainId"))), { code: 4900 });
});

test("an invalid configuration rejects with the text of check", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "forebay-library-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "forebay.yaml");
  const wrong = { chains: [{ name: "a", node: [] }], server: { hots: "x" }, cache: { redis: "${NO_SUCH:-http}://a" } };
  await writeFile(file, JSON.stringify(wrong));
  let message = "";
  assert.throws(
    () => readConfig(readArguments(["check", "--config", file], {}), {}),
    (error) => {
      message = error instanceof ConfigError ? error.message : "";
      return message.includes("server: unknown key");
    },
  );
  // @ts-expect-error Its type is wrong too.
  await assert.rejects(createForebay(wrong), { name: "ConfigError", message });
});

test("a port is opened only if it is configured, and a port in use rejects", async (t) => {
  const node = await startNode(t);
  const chains = [{ name: "only", nodes: [{ url: node.url }] }];
  const forebay = await start(t, { chains, server: { port: 0, opsPort: 0 } });
  assert.ok(forebay.url !== undefined && forebay.opsUrl !== undefined);
  assert.equal((await fetch(post("/", call("eth_chainId")).clone().url.replace(ORIGIN, forebay.url))).status, 200);
  assert.equal((await fetch(`${forebay.opsUrl}/readyz`)).status, 200);
  assert.equal((await forebay.fetch(post("/", call("eth_chainId")))).status, 200);
  const port = Number(new URL(forebay.url).port);
  await assert.rejects(
    createForebay({ chains, server: { port }, log: { level: "silent" } }),
    /another process uses it/,
  );
});

test("a shared port in use rejects, and nothing that was started goes on", async (t) => {
  const [node, redis, opsPort] = await Promise.all([startNode(t), startRedis(t), freePort()]);
  // That of the node is in use.
  const server = { port: Number(new URL(node.url).port), opsPort, reusePort: true };
  await assert.rejects(
    createForebay({
      ...{ chains: [{ name: "only", nodes: [{ url: node.url }] }], log: { level: "silent" } },
      ...{ cache: { redis: redis.url }, server },
    }),
    /another process uses it/,
  );
  await assert.rejects(fetch(`http://127.0.0.1:${opsPort}/readyz`));
});

test("fetch has the paths, headers, keys and batches of the HTTP server", async (t) => {
  const node = await startNode(t);
  const forebay = await start(t, {
    chains: [{ name: "only", nodes: [{ url: node.url }] }],
    access: { keys: [{ name: "wallet", sha256: createHash("sha256").update(KEY).digest("hex") }] },
    server: { maxBodyBytes: 2_000, maxConnectionsPerAddress: 1 },
  });
  const refused = await forebay.fetch(post("/", call("eth_chainId")));
  assert.deepEqual([refused.status, refused.headers.get("www-authenticate")], [401, "Bearer"]);
  for (const request of [
    post("/", call("eth_chainId"), { "x-api-key": KEY }),
    post("/only", call("eth_chainId"), { authorization: `Bearer ${KEY}` }),
    post(`/only/${KEY}`, call("eth_chainId")),
  ]) {
    const response = await forebay.fetch(request);
    assert.equal(response.status, 200);
    assert.match(response.headers.get("cache-status") ?? "", /^forebay/);
    assert.equal(response.headers.get("connection"), null);
    assert.ok("result" in Object(await response.json()));
  }
  const parallel = Array.from({ length: 3 }, () => forebay.fetch(post(`/${KEY}`, call("eth_chainId"))));
  const found = (await Promise.all(parallel)).map(({ status }) => status);
  assert.deepEqual(found, [200, 200, 200], "requests of this process have no limit of connections");
  const batch = await forebay.fetch(post(`/${KEY}`, [call("eth_chainId"), call("eth_blockNumber", [], 2)]));
  assert.deepEqual(
    ((await batch.json()) as { id: number }[]).map(({ id }) => id),
    [1, 2],
  );
  const statuses = async (path: string, init: RequestInit): Promise<number> =>
    (await forebay.fetch(new Request(ORIGIN + path, { ...init, headers: { "x-api-key": KEY, ...init.headers } })))
      .status;
  assert.equal(await statuses("/", { method: "GET" }), 405);
  assert.equal(await statuses("/none", { method: "GET" }), 404);
  assert.equal(await statuses("/none", { method: "POST", headers: JSON_TYPE, body: "{}" }), 404);
  assert.equal(await statuses("/only", { method: "PUT", body: "{}" }), 405);
  assert.equal(await statuses("/", { method: "POST", body: "{}" }), 415);
  assert.equal(await statuses("/", { method: "POST", headers: JSON_TYPE, body: " ".repeat(3_000) }), 400);
  const notification = { jsonrpc: "2.0", method: "eth_chainId" };
  assert.equal((await forebay.fetch(post(`/${KEY}`, notification))).status, 204);
});

test("a program that is a trusted proxy names the client, whose calls are limited, and its own requests are not", async (t) => {
  const node = await startNode(t);
  const forebay = await start(t, {
    chains: [{ name: "only", nodes: [{ url: node.url }] }],
    access: { trustedProxies: ["127.0.0.1"], limitPerAddress: { calls: 1, seconds: 600 } },
  });
  const statusOf = async (client: string): Promise<number> =>
    (await forebay.fetch(post("/", call("eth_chainId"), { "x-forwarded-for": client }))).status;
  assert.deepEqual(
    [await statusOf("192.0.2.1"), await statusOf("192.0.2.1"), await statusOf("192.0.2.2")],
    [200, 429, 200],
  );
  for (let asked = 0; asked < 3; asked++) {
    assert.ok(await forebay.request({ method: "eth_chainId" }));
  }
});

test("a large response of fetch is streamed, and ends with its reader", async (t) => {
  const large = `0x${"ab".repeat(1_500_000)}`;
  const node = await startNode(t, { handlers: { eth_getCode: () => large } });
  const forebay = await start(t, { chains: [{ name: "only", nodes: [{ url: node.url }] }] });
  const ask = () => forebay.fetch(post("/", call("eth_getCode", [`0x${"1".repeat(40)}`, "0x1"])));
  const plain = await (await ask()).text();
  assert.ok(plain.includes(large));
  const unread = await ask();
  await unread.body?.cancel();
});

test("an aborted fetch ends its request to the node", async (t) => {
  const node = await startNode(t);
  const forebay = await start(t, { chains: [{ name: "only", nodes: [{ url: node.url }] }] });
  // The first calls to a node share batches with forebay's own, which nobody aborts.
  await forebay.request({ method: "eth_getTransactionReceipt", params: [`0x${"2".repeat(64)}`] });
  Object.assign(node.faults, { answer: "hang", methods: ["eth_getTransactionReceipt"] });
  const ending = new AbortController();
  const [asked, broken] = [node.asked("eth_getTransactionReceipt"), node.broken()];
  const request = new Request(post("/", call("eth_getTransactionReceipt", [`0x${"1".repeat(64)}`])), {
    signal: ending.signal,
  });
  const aborted = assert.rejects(forebay.fetch(request), { name: "AbortError" });
  await asked;
  ending.abort();
  await Promise.all([aborted, broken]);
});

test("a body that breaks rejects with its error", async (t) => {
  const node = await startNode(t);
  const forebay = await start(t, { chains: [{ name: "only", nodes: [{ url: node.url }] }] });
  const body = new ReadableStream({ pull: (controller) => controller.error(new Error("the body broke")) });
  const request = new Request(`${ORIGIN}/`, { method: "POST", headers: JSON_TYPE, body, duplex: "half" });
  await assert.rejects(forebay.fetch(request), /the body broke/);
});
