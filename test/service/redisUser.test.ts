import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { readRepositoryFile } from "../docs/repositoryFiles.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startRedis, untilRedisIsUsed } from "../support/servers/redis.ts";
import { createService } from "../support/servers/service.ts";

const PASSWORD = "a-password";

/** Creates the user that docs/operate.md recommends. */
const startRestricted = async (t: TestContext) => {
  const redis = await startRedis(t);
  const [, rule] = /^user forebay on >PASSWORD (.+)$/m.exec(readRepositoryFile("docs/operate.md")) ?? [];
  assert.ok(rule);
  assert.equal(await redis.admin.call("ACL", "SETUSER", "forebay", "on", `>${PASSWORD}`, ...rule.split(" ")), "OK");
  return { redis, url: redis.url.replace("//", `//forebay:${PASSWORD}@`) };
};

test("a Redis user with the recommended rights is enough for cache, filters and limits", async (t) => {
  const { redis, url } = await startRestricted(t);
  const node = await createFakeNode();
  const start = async () => {
    const service = await createService(
      { nodes: [{ url: node.url }], pending: { mode: "node" } },
      {
        cache: { redis: url, redisTimeoutMs: 1_000 },
        access: { limitPerAddress: { calls: 1_000, seconds: 600 }, limitStore: "redis" },
      },
    );
    t.after(() => service.close());
    await untilRedisIsUsed(service);
    return service;
  };
  t.after(() => node.close());
  const [one, other] = [await start(), await start()];
  await until(async () => {
    await rpc(one.url, "eth_getBlockByNumber", ["0x1", false]);
    const { headers } = await rpc(other.url, "eth_getBlockByNumber", ["0x1", true]);
    return headers.get("cache-status")?.includes("hit") ?? false;
  }, "a response is cached");
  const { body } = await rpc(one.url, "eth_newBlockFilter");
  assert.deepEqual((await rpc(other.url, "eth_getFilterChanges", [body.result])).body.result, []);
  node.chain.mine();
  await until(async () => {
    const { status, body: changes } = await rpc(other.url, "eth_getFilterChanges", [body.result]);
    assert.equal(status, 200);
    return (changes.result as readonly string[]).length === 1;
  }, "a new block is reported");
  for (const service of [one, other]) {
    assert.equal(await metric(service.opsUrl, "forebay_limiter_failures_total"), 0);
    assert.equal(await metric(service.opsUrl, "forebay_redis_errors_total"), 0);
  }
  const log = await redis.admin.call("ACL", "LOG");
  assert.deepEqual(log, []);
  const keys = await redis.admin.keys("*");
  assert.ok(keys.length >= 3 && keys.every((key) => key.startsWith("forebay")), keys.join(" "));
});
