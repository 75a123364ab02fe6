import assert from "node:assert/strict";
import { test } from "node:test";
import { rpc } from "../support/clients/rpc.ts";
import type { Lie } from "../support/fakes/lyingNode.ts";
import { createService } from "../support/servers/service.ts";
import { TruthChain } from "../world/chain/truthChain.ts";
import { startWorldNode } from "../world/nodes/worldNode.ts";

/** No block is sealed meanwhile. */
const BLOCK_TIME_MS = 60_000;

const removed = (log: unknown): unknown => ({ ...Object(log), removed: true });
const withRemovedLogs = (receipt: unknown): unknown => {
  const { logs, ...rest } = Object(receipt);
  return logs === undefined ? receipt : { ...rest, logs: logs.map(removed) };
};
const LIES: readonly Lie[] = [
  {
    ...{ name: "removed", methods: ["eth_getLogs"] },
    result: (result) => (Array.isArray(result) ? result.map(removed) : result),
  },
  {
    ...{ name: "removed", methods: ["eth_getBlockReceipts"] },
    result: (result) => (Array.isArray(result) ? result.map(withRemovedLogs) : result),
  },
  { name: "removed", methods: ["eth_getTransactionReceipt"], result: withRemovedLogs },
];

test("a node's log that is removed is neither served nor cached", async (t) => {
  const chain = await TruthChain.create(1, 1);
  t.after(() => chain.lagBound.close());
  const nodes = await Promise.all([startWorldNode(t, chain), startWorldNode(t, chain)]);
  const [liar] = nodes;
  assert.ok(liar);
  liar.fault = { lies: LIES };
  const service = await createService({
    nodes: nodes.map(({ url }, index) => ({ name: `node${index}`, url, priority: index })),
    ...{ blockTimeMs: BLOCK_TIME_MS, forks: "prague", pending: { mode: "node" }, state: { follow: false } },
  });
  t.after(() => service.close());
  const { number, hash, hashes } = chain.head;
  const block = `0x${number.toString(16)}`;
  const reads: readonly (readonly [string, unknown])[] = [
    ["eth_getLogs", { fromBlock: "0x1", toBlock: "0x9" }],
    ["eth_getLogs", { fromBlock: block, toBlock: block }],
    ["eth_getLogs", { blockHash: hash }],
    ["eth_getTransactionReceipt", chain.blocksBetween(1, 1)[0]?.hashes[0]],
    ["eth_getTransactionReceipt", hashes[0]],
    ["eth_getBlockReceipts", block],
  ];
  for (const [method, param] of [...reads, ...reads]) {
    const { text } = await rpc(service.url, method, [param]);
    assert.match(text, /"removed":false/, method);
    assert.doesNotMatch(text, /"removed":true/, method);
  }
});
