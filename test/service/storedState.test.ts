import assert from "node:assert/strict";
import { test } from "node:test";
import { startAnvil } from "../devnet/anvil.ts";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { startLyingNode } from "../support/fakes/lyingNode.ts";
import { deployProxiedToken } from "../support/servers/proxiedToken.ts";
import { startRedis } from "../support/servers/redis.ts";
import { createService } from "../support/servers/service.ts";

const VALUES = ["eth_getBalance", "eth_getTransactionCount", "eth_getCode", "eth_getStorageAt"];
/** anvil finalizes blocks 64 below its head. */
const BLOCKS = "0x64";

test("state of a final block is fetched by one replica and reused by another", async (t) => {
  const anvil = await startAnvil(["--hardfork", "prague", "--no-mining"]);
  t.after(() => anvil.close());
  const { block, call } = await deployProxiedToken(anvil);
  await anvil.call("anvil_mine", BLOCKS);
  const redis = await startRedis(t);
  const proxy = await startLyingNode(t, anvil.url);
  const start = () =>
    createService(
      { nodes: [{ url: proxy.url }], blockTimeMs: 1_000, pending: { mode: "node" }, forks: "prague" },
      { cache: { redis: redis.url } },
    );
  const params = [{ blockStateCalls: [{ calls: [call] }] }, `0x${block.number.toString(16)}`];
  const valuesAsked = () => VALUES.reduce((sum, method) => sum + (proxy.calls.get(method) ?? 0), 0);

  const first = await start();
  t.after(() => first.close());
  const simulated = await rpc(first.url, "eth_simulateV1", params);
  assert.equal(simulated.body.error, undefined, simulated.text);
  const asked = valuesAsked();
  assert.ok(asked > 0);
  await until(async () => (await redis.admin.keys("*:state:*")).length > 0, "state is in Redis");

  const second = await start();
  t.after(() => second.close());
  const again = await rpc(second.url, "eth_simulateV1", params);
  assert.deepEqual(again.body, simulated.body);
  assert.equal(again.headers.get("cache-status"), "forebay; hit; detail=local");
  assert.equal(valuesAsked(), asked);
});
