import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { checkConfig } from "../../src/cli/check.ts";
import { formatResult } from "../../src/cli/checkResult.ts";
import { configSchema } from "../../src/config/schema.ts";
import { wireMessage } from "../support/builders/flashblocks.ts";
import { createFakeFeed } from "../support/fakes/fakeFeed.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startRedis } from "../support/servers/redis.ts";

const startNode = async (t: TestContext) => {
  const node = await createFakeNode();
  t.after(() => node.close());
  return node;
};

const startFeed = async (t: TestContext) => {
  const feed = await createFakeFeed();
  t.after(() => feed.close());
  return feed;
};

/** Checks one chain. Returns the printed lines, with times and ports replaced. */
const check = async (chain: object, cache: object = {}): Promise<readonly string[]> => {
  const results = await checkConfig(configSchema.parse({ chains: [{ name: "op", ...chain }], cache }));
  return results.map((result) =>
    formatResult(result)
      .replaceAll(/\d+ ms/g, "N ms")
      .replaceAll(/127\.0\.0\.1:\d+/g, "HOST"),
  );
};

/** Nothing listens on port 9 (discard). */
const DEAD = "127.0.0.1:9";

test("all is well: nodes, WebSocket, feed and Redis", async (t) => {
  const [node, feed, redis] = await Promise.all([startNode(t), startFeed(t), startRedis(t)]);
  void feed.connected().then(() => feed.send(wireMessage(0)));
  const chain = {
    chainId: 31337,
    nodes: [{ url: node.url, wsUrl: node.wsUrl }],
    pending: { feeds: [feed.url] },
  };
  assert.deepEqual(await check(chain, { redis: redis.url }), [
    "ok    op/node1: chain 31337, head 10, N ms",
    "ok    op/node1 WebSocket: newHeads, N ms",
    "ok    op/feed1: first message after N ms",
    "ok    redis: HOST: PING answered, N ms",
  ]);
});

test("a chain without a chain id gets a warning that names it", async (t) => {
  const node = await startNode(t);
  assert.deepEqual(await check({ nodes: [{ url: node.url }] }), [
    "ok    op/node1: chain 31337, head 10, N ms",
    "warn  op: no chainId is configured, the first node that responds decides: set chainId: 31337",
  ]);
});

test("a node of another chain than configured", async (t) => {
  const node = await startNode(t);
  assert.deepEqual(await check({ chainId: 10, nodes: [{ url: node.url }] }), [
    "fault op/node1: its chain id is 31337, the configuration says 10",
  ]);
});

test("a dead node, a dead WebSocket and a dead feed, each with its cause", async (t) => {
  const node = await startNode(t);
  const chain = {
    chainId: 31337,
    nodes: [
      { url: node.url, wsUrl: `ws://${DEAD}/k3y` },
      { url: `http://user:pass@${DEAD}/k3y` },
      { url: "http://node.invalid/k3y" },
    ],
    pending: { feeds: [`ws://${DEAD}/k3y`] },
  };
  const lines = await check(chain);
  const refused = "HOST: ECONNREFUSED (nothing listens on this host and port)";
  assert.deepEqual(
    lines.map((line) => line.replace("EAI_AGAIN", "ENOTFOUND")),
    [
      "ok    op/node1: chain 31337, head 10, N ms",
      `fault op/node1 WebSocket: ${refused}`,
      `fault op/node2: ${refused}`,
      "fault op/node3: node.invalid: ENOTFOUND (the host name does not resolve)",
      `fault op/feed1: ${refused}`,
    ],
  );
  assert.ok(!/k3y|pass/.test(lines.join()), "no credentials");
});

test("TLS to a node without TLS", async (t) => {
  const node = await startNode(t);
  const [line] = await check({ chainId: 31337, nodes: [{ url: node.url.replace("http:", "https:") }] });
  assert.match(line ?? "", /^fault op\/node1: HOST: (?:ERR_SSL_\w+|EPROTO) \(the server does not speak TLS/);
});

test("a Redis that requires another password", async (t) => {
  const [node, { port }] = await Promise.all([startNode(t), startRedis(t, { password: "secret" })]);
  const lines = await check(
    { chainId: 31337, nodes: [{ url: node.url }] },
    { redis: `redis://:terces@127.0.0.1:${port}` },
  );
  assert.equal(
    lines.at(-1),
    "fault redis: HOST: WRONGPASS (the server rejects the user name or the password of the URL)",
  );
});
