import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { rpc } from "../support/clients/rpc.ts";
import type { LieResponse } from "../support/fakes/lyingNode.ts";
import { createService } from "../support/servers/service.ts";
import { TruthChain } from "../world/chain/truthChain.ts";
import { startWorldNode, type WorldNode } from "../world/nodes/worldNode.ts";

const CHAIN_ID = 1;
/** No block is sealed meanwhile. */
const BLOCK_TIME_MS = 60_000;
const RECEIPT = "eth_getTransactionReceipt";
const BLOCK_RECEIPTS = "eth_getBlockReceipts";
const LOGS = "eth_getLogs";
const OLD_RANGE = { fromBlock: "0x1", toBlock: "0x5" };
/** A pruned node has the data of this number of its newest blocks. */
const KEPT_BLOCKS = 8;
const RECEIPTS = 20;

/** The errors of pruned nodes, by client. */
const PRUNED = {
  geth: { code: 4444, message: "pruned history unavailable" },
  erigon: {
    code: -32_000,
    message: "old data not available due to pruning: requested block 5, history is available from block 9",
  },
} as const;
type PrunedError = (typeof PRUNED)[keyof typeof PRUNED];

/** Makes the node answer a read of old receipts and logs with the error. */
const prune = (node: WorldNode, { head }: TruthChain, error: PrunedError): void => {
  const response = (truth: LieResponse, { id }: { readonly id: unknown }): LieResponse => {
    const item: unknown = [truth.result].flat()[0];
    const number = Number(Reflect.get(Object(item), "blockNumber"));
    return number <= head.number - KEPT_BLOCKS ? { jsonrpc: "2.0", id, error } : truth;
  };
  node.fault = { lies: [{ name: "pruned", methods: [RECEIPT, BLOCK_RECEIPTS, LOGS], response }] };
};

/** Starts a service in front of nodes with these errors. Those without one are archives in the next tier. */
const start = async (t: TestContext, errors: readonly (PrunedError | undefined)[]) => {
  const chain = await TruthChain.create(CHAIN_ID, 1);
  t.after(() => chain.lagBound.close());
  const nodes = await Promise.all(errors.map(() => startWorldNode(t, chain)));
  for (const [index, error] of errors.entries()) {
    const node = nodes[index];
    if (node !== undefined && error !== undefined) {
      prune(node, chain, error);
    }
  }
  const service = await createService({
    nodes: nodes.map(({ url }, index) => ({
      name: `node${index}`,
      url,
      priority: errors[index] === undefined ? 1 : 0,
    })),
    ...{ blockTimeMs: BLOCK_TIME_MS, pending: { mode: "node" }, state: { follow: false } },
  });
  t.after(() => service.close());
  const ask = async (method: string, ...params: readonly unknown[]) => (await rpc(service.url, method, params)).body;
  return { chain, nodes, ask };
};

for (const [client, error] of Object.entries(PRUNED)) {
  test(`receipts and logs come from the archive behind three pruned nodes (${client})`, async (t) => {
    const { chain, nodes, ask } = await start(t, [error, error, error, undefined]);
    const old = chain.blocksBetween(1, RECEIPTS);
    for (const block of old) {
      const { result, error: refused } = await ask(RECEIPT, block.hashes[0]);
      assert.deepEqual([refused, result], [undefined, block.receipts[0]]);
    }
    const logs = old.filter(({ number }) => number <= Number(OLD_RANGE.toBlock)).flatMap((block) => block.logs);
    assert.deepEqual((await ask(LOGS, OLD_RANGE)).result, logs);
    // Their blocks are known to be pruned there.
    const countOfPruned = () => nodes.slice(0, 3).reduce((sum, { calls }) => sum + (calls.get(BLOCK_RECEIPTS) ?? 0), 0);
    const before = countOfPruned();
    assert.deepEqual((await ask(BLOCK_RECEIPTS, "0x5")).result, old[4]?.receipts);
    assert.equal(countOfPruned(), before);
  });

  test(`data that all nodes have pruned is error 4444 (${client})`, async (t) => {
    const { chain, ask } = await start(t, [error, error, error, error]);
    const [oldest] = chain.blocksBetween(1, 1);
    const { error: refused } = await ask(RECEIPT, oldest?.hashes[0]);
    assert.deepEqual([refused?.code, refused?.message], [4444, error.message]);
    // At first the nodes say so, and then they are known to have pruned the range.
    assert.equal((await ask(LOGS, OLD_RANGE)).error?.code, 4444);
    assert.equal((await ask(LOGS, OLD_RANGE)).error?.code, 4444);
  });
}
