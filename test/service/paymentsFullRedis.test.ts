import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { startAnvil } from "../devnet/anvil.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { PAY_TO } from "../support/payments/paidService.ts";
import { chainId, Payer, post } from "../support/payments/payer.ts";
import { startFacilitator } from "../support/payments/standInFacilitator.ts";
import { deployToken, NETWORK } from "../support/payments/token.ts";
import { startCommand } from "../support/servers/command.ts";
import { type RedisServer, startRedis } from "../support/servers/redis.ts";

/** Makes a Redis full: it uses more already, and evicts nothing. */
const fill = async ({ admin }: RedisServer): Promise<void> => {
  await admin.config("SET", "maxmemory", "100kb");
  await assert.rejects(admin.set("forebay:entry", "x"), /OOM/);
};

const start = async (t: TestContext, hasOwn: boolean) => {
  const payer = new Payer();
  const anvil = await startAnvil([]);
  t.after(() => anvil.close());
  const [token, facilitator, node, cache, own] = await Promise.all([
    deployToken(anvil, payer.address, 1_000_000_000n),
    startFacilitator(anvil.url),
    createFakeNode(),
    startRedis(t, { args: ["--maxmemory-policy", "noeviction"] }),
    startRedis(t),
  ]);
  t.after(() => facilitator.close());
  t.after(() => node.close());
  const { url } = await startCommand(t, {
    chains: [{ name: "op", nodes: [{ url: node.url }] }],
    cache: { redis: cache.url },
    access: {
      payment: {
        payTo: PAY_TO,
        network: NETWORK,
        asset: token.asset,
        price: { default: "0.001" },
        facilitator: { url: facilitator.url },
        ...(hasOwn && { redis: own.url }),
      },
    },
  });
  await fill(cache);
  return { url, payer, own };
};

test("payments with a Redis of their own are accepted while the Redis of the cache is full", async (t) => {
  const { url, payer, own } = await start(t, true);
  const headers = await payer.payFor(url, chainId);
  // It connects in the background. Until then nothing is charged.
  await until(async () => (await post(url, chainId, headers)).status === 200, "the payment is accepted");
  assert.equal((await post(url, chainId, headers)).status, 402, "a payment is accepted once");
  assert.equal((await own.admin.keys("forebay*")).length, 1);
});

test("without it, a payment is refused: it could have been used", async (t) => {
  const { url, payer } = await start(t, false);
  const headers = await payer.payFor(url, chainId);
  const { status, body } = await post(url, chainId, headers);
  assert.deepEqual([status, typeof body.error?.message], [503, "string"]);
});
