import assert from "node:assert/strict";
import { test } from "node:test";
import { keccak256 } from "viem";
import { mnemonicToAccount } from "viem/accounts";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { followHead } from "../support/servers/followHead.ts";
import { startRedis, untilRedisIsUsed } from "../support/servers/redis.ts";
import { createService, type Service } from "../support/servers/service.ts";
import { startSlowProxy } from "../support/servers/slowProxy.ts";

const WORDS = "test test test test test test test test test test test junk";
const SENDER = mnemonicToAccount(WORDS);
const NONCE = 5;

test("the pending nonce counts transactions sent through another replica while a node knows them", async (t) => {
  const redis = await startRedis(t);
  const chain = createFakeChain();
  let isKnown = true;
  const node = await createFakeNode({
    chain,
    handlers: {
      eth_getTransactionCount: () => `0x${NONCE.toString(16)}`,
      eth_sendRawTransaction: ([raw]) => keccak256(raw as `0x${string}`),
      eth_getTransactionByHash: ([hash]) => (isKnown ? { hash, blockHash: null, blockNumber: null } : null),
    },
  });
  const start = () =>
    createService(
      { nodes: [{ url: node.url }], blockTimeMs: 1_000, pending: { mode: "node" } },
      { cache: { redis: redis.url } },
    );
  const [one, other] = await Promise.all([start(), start()]);
  t.after(async () => {
    await Promise.all([one.close(), other.close()]);
    await node.close();
  });
  await Promise.all([one, other].map(untilRedisIsUsed));
  const nonceAt = async ({ url }: typeof one): Promise<number> =>
    Number((await rpc(url, "eth_getTransactionCount", [SENDER.address, "pending"])).body.result);

  for (const [service, nonce] of [
    [one, NONCE],
    [other, NONCE + 1],
  ] as const) {
    const fees = { maxFeePerGas: 10n, maxPriorityFeePerGas: 1n, gas: 21_000n } as const;
    const transaction = { type: "eip1559", chainId: 31_337, nonce, to: SENDER.address, ...fees } as const;
    assert.equal(await nonceAt(service), nonce);
    const { body } = await rpc(service.url, "eth_sendRawTransaction", [await SENDER.signTransaction(transaction)]);
    assert.equal(typeof body.result, "string");
    assert.equal(await nonceAt(service), nonce + 1, "counted where it was sent");
    await until(
      async () => (await nonceAt(one)) === nonce + 1 && (await nonceAt(other)) === nonce + 1,
      "and elsewhere",
    );
  }

  isKnown = false;
  // Younger transactions are not looked up.
  chain.mine(10);
  for (const service of [one, other]) {
    await until(async () => {
      chain.mine();
      await followHead(service, { head: chain.latest });
      return (await nonceAt(service)) === NONCE;
    }, "what nodes dropped is forgotten");
  }
  assert.deepEqual([await nonceAt(one), await nonceAt(other)], [NONCE, NONCE]);
});

/** Of Redis, as in another region. */
const REDIS_MS = 30;
/** A send waits so long for Redis. */
const MAX_WRITE_MS = 50;
const SENDS = 16;

const failuresOf = async ({ telemetry }: Service): Promise<number> =>
  (await telemetry.metrics.redisErrors.get()).values.reduce((sum, { value }) => sum + value, 0);

test("no nonce is repeated at another replica after a send, although Redis is far away", async (t) => {
  const redis = await startRedis(t);
  const node = await createFakeNode({
    chain: createFakeChain(),
    handlers: {
      eth_getTransactionCount: () => "0x0",
      eth_sendRawTransaction: ([raw]) => keccak256(raw as `0x${string}`),
    },
  });
  const start = async () => {
    const proxy = await startSlowProxy(t, redis.port);
    const service = await createService(
      { nodes: [{ url: node.url }], blockTimeMs: 1_000, pending: { mode: "node" } },
      { cache: { redis: `redis://127.0.0.1:${proxy.port}` } },
    );
    return { proxy, service };
  };
  const [one, other] = await Promise.all([start(), start()]);
  t.after(async () => {
    await Promise.all([one, other].map(({ service }) => service.close()));
    await node.close();
  });
  await Promise.all([one, other].map(({ service }) => untilRedisIsUsed(service)));
  const failures = async (): Promise<number> => (await failuresOf(one.service)) + (await failuresOf(other.service));
  let measured = 0;
  let repeated = 0;
  for (let addressIndex = 0; addressIndex < SENDS; addressIndex++) {
    // A sender of its own: a write that is late changes no other result.
    const sender = mnemonicToAccount(WORDS, { addressIndex });
    const [sending, reading] = addressIndex % 2 === 0 ? [one, other] : [other, one];
    sending.proxy.clientDelayMs = REDIS_MS;
    reading.proxy.clientDelayMs = 0;
    const fees = { maxFeePerGas: 10n, maxPriorityFeePerGas: 1n, gas: 21_000n } as const;
    const transaction = { type: "eip1559", chainId: 31_337, nonce: 0, to: SENDER.address, ...fees } as const;
    const raw = await sender.signTransaction(transaction);
    const before = await failures();
    const startMs = performance.now();
    const { body } = await rpc(sending.service.url, "eth_sendRawTransaction", [raw]);
    const isWritten = performance.now() - startMs < MAX_WRITE_MS;
    assert.equal(typeof body.result, "string");
    const read = await rpc(reading.service.url, "eth_getTransactionCount", [sender.address, "pending"]);
    // On a busy machine, a write or a read of Redis may take longer than forebay waits.
    if (isWritten && (await failures()) === before) {
      measured++;
      repeated += Number(Number(read.body.result) === 0);
    }
  }
  t.diagnostic(`${measured} of ${SENDS} sends were measured`);
  assert.equal(repeated, 0);
});
