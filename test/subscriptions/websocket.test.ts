import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { WebSocket } from "ws";
import { connectSocket } from "../support/clients/socketClient.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { createService, type Service } from "../support/servers/service.ts";

let node: FakeNode;
let service: Service;

const big = "0x".padEnd(200_000, "ab");

before(async () => {
  node = await createFakeNode({ handlers: { eth_getCode: () => big } });
  service = await createService(
    { nodes: [{ url: node.url, wsUrl: node.wsUrl }] },
    { server: { maxBodyBytes: 10_000, maxBatch: 5, maxSubscriptions: 3 } },
  );
});
after(async () => {
  await service?.close();
  await node?.close();
});

test("the same answers as over HTTP, byte for byte: ids, batches, errors", async () => {
  const client = await connectSocket(service.url);
  const calls = [
    '{"jsonrpc":"2.0","id":1e2,"method":"eth_chainId"}',
    '{"jsonrpc":"2.0","id":"a\\u0062","method":"eth_getBalance","params":["0x1"]}',
    '[{"jsonrpc":"2.0","id":1,"method":"eth_chainId"},{"jsonrpc":"2.0","method":"eth_chainId"},{"jsonrpc":"2.0","id":null,"method":"net_version"}]',
    `[${Array.from({ length: 6 }, () => '{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}').join()}]`,
    "[]",
    "{",
    '{"jsonrpc":"2.0","id":5,"method":"admin_peers"}',
    '{"jsonrpc":"2.0","id":6,"method":"eth_unsubscribe","params":[1]}'.replace("eth_unsubscribe", "eth_nothing"),
  ];
  for (const body of calls) {
    const response = await fetch(service.url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    assert.equal(await client.raw(body), await response.text(), body);
  }
  await client.close();
});

test("calls on one connection run in parallel, and a large response is complete", async () => {
  const client = await connectSocket(service.url);
  const address = `0x${"1".repeat(40)}`;
  const [code, ...ids] = await Promise.all([
    client.call("eth_getCode", address, "latest"),
    ...Array.from({ length: 200 }, () => client.call("eth_chainId")),
  ]);
  assert.equal(code.result, big);
  assert.ok(ids.every(({ result }) => result === "0x7a69"));
  await client.close();
});

test("a message above the limit ends the connection with 1009", async () => {
  const client = await connectSocket(service.url);
  client.socket.send(`{"jsonrpc":"2.0","id":1,"method":"${"x".repeat(10_000)}"}`);
  assert.equal((await client.closed()).code, 1009);
});

test("newHeads has the node's header and size, without the block's lists", async () => {
  const client = await connectSocket(service.url);
  const heads = await client.subscribe("newHeads");
  node.chain.mine(3);
  await client.atLeast(heads, 3);
  const { transactions, uncles, ...header } = node.chain.latest.json;
  assert.equal(header.size, "0x200");
  assert.deepEqual(heads[2], header);
  node.chain.reorg(2, 3);
  await client.atLeast(heads, 6);
  assert.deepEqual(
    heads.slice(3).map((head) => (head as { hash: string }).hash),
    node.chain.blocks.slice(-3).map(({ hash }) => hash),
  );
  await client.close();
});

test("unsubscribing returns true, and a second time an error", async () => {
  const client = await connectSocket(service.url);
  const { result: id } = await client.call("eth_subscribe", "newHeads");
  assert.match(String(id), /^0x[0-9a-f]{32}$/);
  assert.equal((await client.call("eth_unsubscribe", id)).result, true);
  assert.deepEqual((await client.call("eth_unsubscribe", id)).error, {
    code: -32_000,
    message: "subscription not found",
  });
  await client.close();
});

test("subscriptions with options that have no effect are rejected", async () => {
  const client = await connectSocket(service.url);
  const refusals: readonly [params: readonly unknown[], code: number, text: RegExp][] = [
    [[], -32_602, /name/],
    [["newBlocks"], -32_602, /"newBlocks"/],
    [["newHeads", { address: [] }], -32_602, /no options/],
    [["logs", "0x1"], -32_602, /filter/],
    [["pendingLogs", { address: "0x1" }], -32_602, /address/],
    [["pendingLogs", { topics: ["0x12"] }], -32_602, /topics\[0\]/],
    [["logs", { blockHash: `0x${"1".repeat(64)}` }], -32_602, /blockHash/],
    [["newPendingTransactions", {}], -32_602, /true/],
    [["newFlashblockTransactions", "all"], -32_602, /true/],
    [["newFlashblockTransactions", { address: "0x1" }], -32_602, /address/],
    [["newFlashblockTransactions", { blockHash: `0x${"1".repeat(64)}` }], -32_602, /blockHash/],
    [["newHeads", null, 1], -32_602, /too many/],
  ];
  for (const [params, code, text] of refusals) {
    const { error } = await client.call("eth_subscribe", ...params);
    assert.equal(error?.code, code, JSON.stringify(params));
    assert.match(String(error?.message), text);
  }
  for (let at = 0; at < 3; at++) {
    await client.subscribe("newHeads");
  }
  const { error } = await client.call("eth_subscribe", "newHeads");
  assert.deepEqual(error, { code: -32_600, message: "more than 3 subscriptions on one connection" });
  await client.close();
});

test("an unlisted Origin and a connection above the limit are rejected", async () => {
  const small = await createService(
    { nodes: [{ url: node.url }] },
    { server: { maxWebSockets: 1, corsOrigins: ["https://a.example"] } },
  );
  const status = (origin: string) =>
    new Promise<number | undefined>((resolve) => {
      const socket = new WebSocket(small.url.replace("http:", "ws:"), { origin });
      socket.on("unexpected-response", (_, response) => resolve(response.statusCode));
      socket.on("error", () => undefined);
    });
  assert.equal(await status("https://b.example"), 403);
  await connectSocket(small.url);
  assert.equal(await status("https://a.example"), 503);
  await small.close();
});

test("closing the server closes each connection with 1001", async () => {
  const other = await createService({ nodes: [{ url: node.url }] });
  const client = await connectSocket(other.url);
  await client.subscribe("newHeads");
  const [{ code, reason }] = await Promise.all([client.closed(), other.close()]);
  assert.deepEqual({ code, reason }, { code: 1001, reason: "going away" });
});

test("subscriptions of one client are limited in bytes, over all its connections", async (t) => {
  const limited = await createService({ nodes: [{ url: node.url }], logs: { maxFilterBytes: 1_000 } });
  t.after(() => limited.close());
  const address = Array.from({ length: 9 }, (_, index) => `0x${`${index}`.repeat(40)}`);
  const [one, other] = [await connectSocket(limited.url), await connectSocket(limited.url)];
  const subscribe = (client: typeof one) => client.call("eth_subscribe", "logs", { address });
  const { result: id } = await subscribe(one);
  assert.equal((await subscribe(other)).error, undefined);
  const { error } = await subscribe(one);
  assert.deepEqual(error, { code: -32600, message: "more than 1000 bytes of subscriptions of one client" });
  assert.equal((await other.call("eth_unsubscribe", "0x")).error?.message, "subscription not found");
  assert.equal((await one.call("eth_unsubscribe", id)).result, true);
  assert.equal((await subscribe(one)).error, undefined);
  await other.close();
  await until(async () => (await subscribe(one)).error === undefined, "a closed connection counts nothing");
  await one.close();
});
