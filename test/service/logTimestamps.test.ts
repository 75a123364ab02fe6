import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { formatQuantity } from "../../src/ethereum/hex.ts";
import { rpc } from "../support/clients/rpc.ts";
import type { Lie } from "../support/fakes/lyingNode.ts";
import { createService } from "../support/servers/service.ts";
import { TruthChain } from "../world/chain/truthChain.ts";
import { startWorldNode } from "../world/nodes/worldNode.ts";

/** No block is sealed meanwhile. */
const BLOCK_TIME_MS = 60_000;

type Change = (log: object) => object;

const changedReceipt = (receipt: unknown, change: Change): unknown => {
  const { logs, ...rest } = Object(receipt);
  return logs === undefined ? receipt : { ...rest, logs: logs.map(change) };
};

/** A node that states its logs otherwise, alone and in receipts. */
const liesOf = (change: Change): readonly Lie[] => [
  {
    ...{ name: "logs", methods: ["eth_getLogs"] },
    result: (result) => (Array.isArray(result) ? result.map((log) => change(log)) : result),
  },
  {
    ...{ name: "receipts", methods: ["eth_getBlockReceipts"] },
    result: (result) => (Array.isArray(result) ? result.map((receipt) => changedReceipt(receipt, change)) : result),
  },
  { name: "receipt", methods: ["eth_getTransactionReceipt"], result: (result) => changedReceipt(result, change) },
];

const start = async (t: TestContext, change: Change, nodeCount: number) => {
  const chain = await TruthChain.create(1, 1);
  t.after(() => chain.lagBound.close());
  const nodes = await Promise.all(Array.from({ length: nodeCount }, () => startWorldNode(t, chain)));
  const [first] = nodes;
  assert.ok(first);
  first.fault = { lies: liesOf(change) };
  const service = await createService({
    nodes: nodes.map(({ url }, index) => ({ name: `node${index}`, url, priority: index })),
    ...{ blockTimeMs: BLOCK_TIME_MS, forks: "prague", pending: { mode: "node" }, state: { follow: false } },
  });
  t.after(() => service.close());
  const { head } = chain;
  const block = formatQuantity(head.number);
  const reads: readonly (readonly [string, unknown])[] = [
    ["eth_getLogs", { fromBlock: formatQuantity(head.number - 9), toBlock: block }],
    ["eth_getLogs", { fromBlock: block, toBlock: block }],
    ["eth_getLogs", { blockHash: head.hash }],
    ["eth_getBlockReceipts", block],
    ["eth_getTransactionReceipt", head.hashes[0]],
  ];
  const isTrue = (timestamp: string) =>
    chain.blocksBetween(head.number - 9, head.number).some(({ header }) => header.timestamp === BigInt(timestamp));
  return { url: service.url, reads: [...reads, ...reads], isTrue };
};

const timestampsIn = (text: string): string[] =>
  [...text.matchAll(/"blockTimestamp":"(\w+)"/g)].map(([, at = ""]) => at);

test("a log with another timestamp than its block is neither served nor cached", async (t) => {
  const { url, reads, isTrue } = await start(t, (log) => ({ ...log, blockTimestamp: "0x1" }), 2);
  for (const [method, param] of reads) {
    const { text } = await rpc(url, method, [param]);
    const timestamps = timestampsIn(text);
    assert.ok(timestamps.length > 0 && timestamps.every(isTrue), `${method} ${text}`);
  }
});

test("a timestamp of zero is not stated: logs have that of their block", async (t) => {
  const { url, reads, isTrue } = await start(t, (log) => ({ ...log, blockTimestamp: "0x0" }), 1);
  for (const [method, param] of reads) {
    const { text } = await rpc(url, method, [param]);
    assert.doesNotMatch(text, /"error"/, method);
    if (method === "eth_getLogs") {
      const timestamps = timestampsIn(text);
      assert.ok(timestamps.length > 0 && timestamps.every(isTrue), text);
    }
  }
});

test("a member of logs that forebay does not know does no harm", async (t) => {
  const { url, reads } = await start(t, (log) => ({ ...log, timestamp: "0x0", added: [{}] }), 1);
  for (const [method, param] of reads) {
    const { text } = await rpc(url, method, [param]);
    assert.match(text, /"added":\[\{\}\]/, method);
  }
});
