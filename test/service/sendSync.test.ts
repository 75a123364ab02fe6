import assert from "node:assert/strict";
import { test } from "node:test";
import { keccak256 } from "viem";
import { mnemonicToAccount } from "viem/accounts";
import { rpc } from "../support/clients/rpc.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

const SENDER = mnemonicToAccount("test test test test test test test test test test test junk");
const NONCE = 5n;
const COST = 21_000n * 10n + 1n;

const sign = (nonce: bigint) =>
  SENDER.signTransaction({
    ...{ type: "eip1559", chainId: 31_337, nonce: Number(nonce), to: SENDER.address, value: 1n },
    ...{ maxFeePerGas: 10n, maxPriorityFeePerGas: 1n, gas: 21_000n },
  });

interface Sent {
  /** Above the nonce of the sealed transactions. */
  readonly ahead: bigint;
  readonly balance: bigint;
  /** The nonce after the transactions in the pool of the node. */
  readonly pooled?: bigint;
  readonly code: number;
  dataOf(raw: `0x${string}`): string;
}

const CASES: Readonly<Record<string, Sent>> = {
  "a transaction above the expected nonce: code 6, with that nonce": {
    ...{ ahead: 2n, balance: COST, code: 6 },
    dataOf: () => `0x${NONCE.toString(16)}`,
  },
  "a transaction above a gap that begins in the pool of the node: the nonce there": {
    ...{ ahead: 3n, balance: COST, pooled: NONCE + 1n, code: 6 },
    dataOf: () => `0x${(NONCE + 1n).toString(16)}`,
  },
  "a transaction that follows those in the pool of the node: code 4, with its hash": {
    ...{ ahead: 2n, balance: COST, pooled: NONCE + 2n, code: 4 },
    dataOf: (raw) => keccak256(raw),
  },
  "a transaction that its sender cannot pay: code 5, with its hash": {
    ...{ ahead: 0n, balance: COST - 1n, code: 5 },
    dataOf: (raw) => keccak256(raw),
  },
  "a transaction that its sender can pay: code 4, with its hash": {
    ...{ ahead: 0n, balance: COST, code: 4 },
    dataOf: (raw) => keccak256(raw),
  },
};

for (const [name, { ahead, balance, pooled = NONCE, code, dataOf }] of Object.entries(CASES)) {
  test(`eth_sendRawTransactionSync of ${name}`, async (t) => {
    const chain = createFakeChain();
    const node = await createFakeNode({
      chain,
      handlers: {
        // Its pending block has spent the funds on the transaction.
        eth_getBalance: ([, at]) => `0x${(at === "pending" ? 0n : balance).toString(16)}`,
        eth_getTransactionCount: ([, tag]) => `0x${(tag === "pending" ? pooled : NONCE).toString(16)}`,
        eth_sendRawTransaction: ([raw]) => keccak256(raw as `0x${string}`),
        eth_getTransactionReceipt: () => null,
      },
    });
    const service = await createService({
      nodes: [{ url: node.url }],
      blockTimeMs: 1_000,
      pending: { mode: "node" },
    });
    t.after(async () => {
      await service.close();
      await node.close();
    });
    const raw = await sign(NONCE + ahead);
    const asked = node.asked("eth_getTransactionReceipt");
    const answer = rpc(service.url, "eth_sendRawTransactionSync", [raw, code === 4 ? 1_000 : 5_000]);
    await asked;
    chain.mine();
    const { error } = (await answer).body;
    assert.deepEqual([error?.code, Reflect.get(Object(error), "data")], [code, dataOf(raw)]);
  });
}
