import assert from "node:assert/strict";
import { test } from "node:test";
import { formatQuantity } from "../../src/ethereum/hex.ts";
import { rpc } from "../support/clients/rpc.ts";
import type { Lie } from "../support/fakes/lyingNode.ts";
import { createService } from "../support/servers/service.ts";
import { TruthChain } from "../world/chain/truthChain.ts";
import { startWorldNode } from "../world/nodes/worldNode.ts";

/** No block is sealed meanwhile. */
const BLOCK_TIME_MS = 60_000;

test("the empty list of a node that has forgotten a block is no answer, also if the block's header is known", async (t) => {
  const chain = await TruthChain.create(1, 1);
  t.after(() => chain.lagBound.close());
  const node = await startWorldNode(t, chain);
  const service = await createService(
    {
      nodes: [{ url: node.url }],
      ...{ blockTimeMs: BLOCK_TIME_MS, forks: "prague", pending: { mode: "node" }, state: { follow: false } },
    },
    // Its receipts cost more than logs, so that nodes return the logs of one block.
    { usage: { prices: "infura" } },
  );
  t.after(() => service.close());
  const { number } = chain.head;
  const [block] = chain.blocksBetween(number, number);
  assert.ok(block && block.logs.length > 0);
  const ask = async (method: string, ...params: readonly unknown[]) => (await rpc(service.url, method, params)).body;
  const { hash } = Object((await ask("eth_getBlockByNumber", formatQuantity(number), true)).result);
  const forgets: Lie = {
    name: "forgets",
    methods: ["eth_getLogs", "eth_getBlockByHash", "eth_getBlockReceipts"],
    result: (result, { method, params }) => {
      const isNamed = JSON.stringify(params).includes(hash);
      return isNamed ? (method === "eth_getLogs" ? [] : null) : result;
    },
  };
  node.fault = { lies: [forgets] };
  const forgotten = await ask("eth_getLogs", { blockHash: hash });
  assert.equal(forgotten.error?.message, "unknown block", JSON.stringify(forgotten));
  node.fault = {};
  assert.deepEqual((await ask("eth_getLogs", { blockHash: hash })).result, block.logs);
});
