import assert from "node:assert/strict";
import { test } from "node:test";
import { keccak256 } from "viem";
import { mnemonicToAccount } from "viem/accounts";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { followHead } from "../support/servers/followHead.ts";
import { startRedis } from "../support/servers/redis.ts";
import { createService } from "../support/servers/service.ts";

const SENDER = mnemonicToAccount("test test test test test test test test test test test junk");
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
      await followHead(service, chain);
      return (await nonceAt(service)) === NONCE;
    }, "what nodes dropped is forgotten");
  }
  assert.deepEqual([await nonceAt(one), await nonceAt(other)], [NONCE, NONCE]);
});
