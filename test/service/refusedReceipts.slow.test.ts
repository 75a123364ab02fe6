import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connectSocket } from "../support/clients/socketClient.ts";
import { until } from "../support/clients/until.ts";
import type { Lie } from "../support/fakes/lyingNode.ts";
import { startLyingNode } from "../support/fakes/lyingNode.ts";
import { createSealedChain, type SealedChain } from "../support/servers/sealedChain.ts";
import { createService } from "../support/servers/service.ts";

const EMPTY_BLOCKS = 4;

let chain: SealedChain;
before(async () => {
  chain = await createSealedChain(EMPTY_BLOCKS);
});
after(() => chain.devnet.close());

/** An error whose text says nothing, for good. */
const refusal = (...methods: readonly string[]): Lie => ({
  ...{ name: methods.join(), methods },
  response: (_, { id }) => ({ jsonrpc: "2.0", id, error: { code: -32_000, message: "zorp" } }),
});

/** Sends one token, which writes one log, and seals the block. Returns the hash of the transaction. */
const sealTransfer = async (): Promise<string> => {
  const { devnet, token, accounts } = chain;
  const [from = "", to = ""] = accounts;
  const data = `0xa9059cbb${to.slice(2).padStart(64, "0")}${"1".padStart(64, "0")}`;
  const hash = String(await devnet.rpc("eth_sendTransaction", { from, to: token, data }));
  await devnet.rpc("evm_mine");
  return hash;
};

const hashOf = (value: unknown): unknown => Reflect.get(Object(value), "hash");

for (const { refused, hasLogs } of [
  { refused: ["eth_getBlockReceipts"], hasLogs: true },
  { refused: ["eth_getBlockReceipts", "eth_getLogs"], hasLogs: false },
]) {
  test(`nodes that refuse ${refused.join(" and ")} for good hold up no later event`, async (t) => {
    const node = await startLyingNode(t, chain.devnet.anvilUrl);
    const service = await createService({
      nodes: [{ url: node.url }],
      ...{ pending: { mode: "native" }, state: { follow: false } },
    });
    t.after(() => service.close());
    node.lies = [refusal(...refused)];
    const socket = await connectSocket(service.url);
    t.after(() => socket.close());
    const hashes = await socket.subscribe("newFlashblockTransactions");
    const whole = await socket.subscribe("newFlashblockTransactions", true);
    const receipts = await socket.subscribe("transactionReceipts", {});
    const first = await sealTransfer();
    await until(() => hashes.includes(first), "the hash is sent");
    await until(() => receipts.length > 0, "the receipts are sent, read one by one");
    const second = await sealTransfer();
    await until(() => hashes.includes(second), "the hash of the next block is sent");
    if (hasLogs) {
      await until(() => whole.length === 2, "whole transactions are sent with their logs");
    }
    assert.deepEqual(whole.map(hashOf), hasLogs ? [first, second] : [], "without its logs, none is sent");
  });
}
