import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { parseTransaction } from "viem";
import { mnemonicToAccount } from "viem/accounts";
import { startAnvil } from "../devnet/anvil.ts";
import { rpc } from "../support/clients/rpc.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNodeOptions } from "../support/fakes/fakeNode.ts";
import { followHead } from "../support/servers/followHead.ts";
import { createService, type ServiceChain } from "../support/servers/service.ts";

const SENDER = mnemonicToAccount("test test test test test test test test test test test junk");
/** Long, so that no read is late on a busy machine. The test refreshes the heads itself. */
const LONG_MS = 20_000;
const START_SECONDS = 1_700_000_000;
const SECONDS_PER_BLOCK = 12;

interface Filled {
  readonly raw: `0x${string}`;
  readonly tx: Readonly<Record<string, string>>;
}

test("a transaction that forebay filled is signed, sent and sealed, one after another", async (t) => {
  const anvil = await startAnvil(["--chain-id", "31337"]);
  const service = await createService({ nodes: [{ url: anvil.url }] });
  t.after(async () => {
    await service.close();
    await anvil.close();
  });
  for (const nonce of [0, 1]) {
    const wanted = { from: SENDER.address, to: `0x${"cc".repeat(20)}`, value: "0x5" };
    const { body } = await rpc(service.url, "eth_fillTransaction", [wanted]);
    const { raw, tx } = body.result as Filled;
    const { r: _, s: __, v: ___, yParity: ____, ...filled } = parseTransaction(raw);
    assert.deepEqual([filled.nonce, filled.gas, filled.chainId, filled.value], [nonce, 21_000n, 31_337, 5n]);
    const { result } = (await rpc(service.url, "eth_getBlockByNumber", ["latest", false])).body;
    const baseFee = BigInt((result as Record<string, string>).baseFeePerGas ?? "");
    assert.equal(filled.maxFeePerGas, (filled.maxPriorityFeePerGas ?? 0n) + 2n * baseFee);
    assert.equal(BigInt(tx.maxFeePerGas ?? ""), filled.maxFeePerGas);
    const signed = await SENDER.signTransaction(filled as Parameters<typeof SENDER.signTransaction>[0]);
    const sent = await rpc(service.url, "eth_sendRawTransactionSync", [signed]);
    assert.equal((sent.body.result as Record<string, string> | undefined)?.status, "0x1", sent.text);
  }
});

const startFake = async (
  t: TestContext,
  handlers: NonNullable<FakeNodeOptions["handlers"]>,
  options: Partial<ServiceChain> = {},
) => {
  const chain = createFakeChain({ startSeconds: START_SECONDS, secondsPerBlock: SECONDS_PER_BLOCK });
  const node = await createFakeNode({ chain, handlers });
  const service = await createService({ nodes: [{ url: node.url }], blockTimeMs: LONG_MS, ...options });
  t.after(async () => {
    await service.close();
    await node.close();
  });
  const mine = async (count = 1) => {
    chain.mine(count);
    await followHead(service, { head: chain.latest });
  };
  const ask = async (method: string, params: readonly unknown[] = []) => (await rpc(service.url, method, params)).body;
  return { chain, node, mine, ask };
};

test("a blob transaction is forwarded to be filled, and so is one with an unknown field", async (t) => {
  const { node, ask } = await startFake(t, { eth_fillTransaction: () => ({ raw: "0x", tx: {} }) });
  await ask("eth_fillTransaction", [{ blobVersionedHashes: [`0x${"01".repeat(32)}`] }]);
  await ask("eth_fillTransaction", [{ to: SENDER.address, sidecar: true }]);
  assert.equal(node.count("eth_fillTransaction"), 2);
});

test("eth_config is read once until the next fork, and again after it", async (t) => {
  let forkSeconds = 0;
  const before = { current: { activationTime: 0 }, next: { activationTime: 0 }, last: null };
  const { chain, node, mine, ask } = await startFake(t, {
    eth_config: () => {
      const isActive = Number(chain.latest.timestamp) >= forkSeconds;
      return isActive
        ? { current: { activationTime: forkSeconds }, next: null, last: null }
        : { ...before, next: { activationTime: forkSeconds } };
    },
  });
  // The rules are checked by this method at the start, too.
  const head = Number(chain.latest.timestamp);
  forkSeconds = head + 2 * SECONDS_PER_BLOCK;
  const first = node.count("eth_config");
  const current = async () => (await ask("eth_config")).result as { current: { activationTime: number } };
  assert.equal((await current()).current.activationTime, 0);
  await mine();
  assert.equal((await current()).current.activationTime, 0);
  assert.ok(node.count("eth_config") - first <= 2);
  await mine();
  assert.equal((await current()).current.activationTime, forkSeconds);
  const asked = node.count("eth_config");
  await mine();
  assert.equal((await current()).current.activationTime, forkSeconds);
  assert.ok(node.count("eth_config") - asked <= 1);
});
