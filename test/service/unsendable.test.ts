import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { rpc } from "../support/clients/rpc.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService, type ServiceChain } from "../support/servers/service.ts";

const POST_EXEC = "0x7dc8010ec5c401821388";
const DEPOSIT = `0x7e${"00".repeat(40)}`;
const LEGACY = "0xc0";
/** The parameters with which each method sends a raw transaction. */
const SENDS = {
  eth_sendRawTransaction: (raw: string) => [raw],
  eth_sendRawTransactionSync: (raw: string) => [raw, 1],
  eth_sendRawTransactionConditional: (raw: string) => [raw],
  eth_sendPrivateTransaction: (tx: string) => [{ tx }],
  eth_sendBundle: (raw: string) => [{ txs: [LEGACY, raw], blockNumber: "0x1" }],
} as const;

const start = async (t: TestContext, chainId: number, options: Partial<ServiceChain> = {}) => {
  const node = await createFakeNode({
    chain: createFakeChain({ chainId }),
    handlers: {
      eth_sendRawTransactionConditional: () => `0x${"ab".repeat(32)}`,
      eth_sendPrivateTransaction: () => `0x${"ab".repeat(32)}`,
      eth_sendBundle: () => ({ bundleHash: `0x${"ab".repeat(32)}` }),
    },
  });
  t.after(() => node.close());
  const service = await createService({ nodes: [{ url: node.url }], pending: { mode: "node" }, ...options });
  t.after(() => service.close());
  return { node, service };
};

for (const [name, chainId, refused, options] of [
  ["OP Sepolia", 11_155_420, [POST_EXEC, DEPOSIT], {}],
  ["OP Mainnet without execution", 10, [POST_EXEC, DEPOSIT], { forks: "none" }],
  ["Base, which has no Lagoon", 8_453, [DEPOSIT], {}],
  ["a development chain with Lagoon", 901, [POST_EXEC, DEPOSIT], { forks: "lagoon" }],
  ["Ethereum", 1, [], {}],
] as const satisfies readonly (readonly [string, number, readonly string[], Partial<ServiceChain>])[]) {
  test(`${name} gets only transactions that a client may send`, async (t) => {
    const { node, service } = await start(t, chainId, options);
    for (const raw of [POST_EXEC, DEPOSIT]) {
      const isRefused = refused.some((each) => each === raw);
      for (const [method, paramsOf] of Object.entries(SENDS)) {
        const before = node.count("eth_sendRawTransaction", method);
        const { body } = await rpc(service.url, method, paramsOf(raw));
        assert.equal(node.count("eth_sendRawTransaction", method) - before > 0, !isRefused, `${method} ${raw}`);
        if (isRefused) {
          assert.deepEqual(body.error, { code: -32_000, message: "transaction type not supported" });
        }
      }
    }
  });
}
