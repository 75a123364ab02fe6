import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { formatQuantity } from "../../src/ethereum/hex.ts";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import type { Lie } from "../support/fakes/lyingNode.ts";
import { type IndexedChain, indexBlock, startIndexedChain } from "../support/servers/indexedChain.ts";
import { createService } from "../support/servers/service.ts";
import { TruthChain } from "../world/chain/truthChain.ts";
import { startWorldNode } from "../world/nodes/worldNode.ts";

/** No block is due meanwhile. */
const BLOCK_TIME_MS = 60_000;
const FAST_BLOCKS_MS = 200;
const BLOCKS = 400;
const INDEXED = 30;
/** A final block, and one of the newest 256. */
const OLD = 200;
/** The genesis, and those below the head. */
const HEADERS_OF_START = 64;
const READS = ["eth_getBlockByNumber", "eth_getBlockByHash", "eth_getLogs", "eth_getBlockReceipts"];

const start = async (
  t: TestContext,
  prices: "alchemy" | "infura",
  blockTimeMs = BLOCK_TIME_MS,
): Promise<IndexedChain> => {
  const indexed = await startIndexedChain(t, BLOCKS);
  const service = await createService(
    { nodes: [{ url: indexed.url }], blockTimeMs, forks: "prague" },
    { usage: { prices } },
  );
  t.after(() => service.close());
  // An idle chain fills its ring slowly.
  const ofStart = async () => {
    await rpc(service.url, "eth_blockNumber", []);
    return (indexed.calls.get("eth_getBlockByNumber") ?? 0) >= HEADERS_OF_START;
  };
  await until(ofStart, "the headers of a start are read");
  return { ...indexed, url: service.url };
};

const countsOf = ({ calls }: Pick<IndexedChain, "calls">, names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, calls.get(name) ?? 0]));

for (const [name, prices, ofLogs] of [
  ["their receipts beside the blocks, if logs cost more", "alchemy", { eth_getLogs: 0, eth_getBlockReceipts: INDEXED }],
  ["their logs beside the blocks, if receipts cost more", "infura", { eth_getLogs: INDEXED, eth_getBlockReceipts: 0 }],
] as const) {
  test(`an indexer of old blocks costs ${name}`, async (t) => {
    const indexed = await start(t, prices);
    for (let number = OLD; number < OLD + INDEXED; number++) {
      const logs = await indexBlock(indexed.url, number);
      assert.deepEqual(logs, indexed.chain.blocksBetween(number, number)[0]?.logs);
    }
    assert.deepEqual(countsOf(indexed, READS), {
      ...{ eth_getBlockByNumber: HEADERS_OF_START + INDEXED, eth_getBlockByHash: 0 },
      ...ofLogs,
    });
  });
}

test("logs that the bloom of a read block excludes cost nothing", async (t) => {
  const indexed = await start(t, "alchemy");
  for (let number = 1; number <= INDEXED; number++) {
    assert.deepEqual(await indexBlock(indexed.url, number, { address: `0x${"00".repeat(20)}` }), []);
  }
  assert.deepEqual(countsOf(indexed, READS), {
    eth_getBlockByNumber: HEADERS_OF_START + INDEXED,
    eth_getLogs: 0,
    eth_getBlockReceipts: 0,
    eth_getBlockByHash: 0,
  });
});

test("an indexer that reads logs of a range after a start reads the headers that the range needs, once", async (t) => {
  const indexed = await start(t, "alchemy");
  const before = indexed.calls.get("eth_getBlockByNumber") ?? 0;
  const filter = { fromBlock: formatQuantity(BLOCKS - 99), toBlock: formatQuantity(BLOCKS - 10) };
  for (let repeat = 0; repeat < 2; repeat++) {
    const { body } = await rpc(indexed.url, "eth_getLogs", [filter]);
    assert.equal(Object(body.result).length, 90);
    // One read finds that the node has not left the branch of its logs.
    assert.equal(indexed.calls.get("eth_getBlockByNumber"), before + 100 - HEADERS_OF_START + 1);
  }
});

/** The calls by which forebay follows the head. Their number depends on time. */
const FOLLOWING = /^(eth_chainId|eth_getBlockByNumber (latest|safe|finalized))$/;

/** Reads of new heads what \`read\` reads. Returns the calls for them, but for the first. */
const followHeads = async (
  { chain, calls, url }: IndexedChain,
  heads: number,
  read: (number: number) => Promise<unknown>,
): Promise<Readonly<Record<string, number>>> => {
  const follow = async (): Promise<void> => {
    await chain.mine(1);
    const { number } = chain.head;
    const isServed = async () => Number((await rpc(url, "eth_blockNumber", [])).body.result) === number;
    await until(isServed, "the head is served");
    await read(number);
  };
  await follow();
  calls.clear();
  for (let head = 0; head < heads; head++) {
    await follow();
  }
  return Object.fromEntries([...calls].filter(([name]) => !FOLLOWING.test(name)).toSorted());
};

const HEADS = 6;

test("an indexer at the head costs the polls, and the receipts of each block once", async (t) => {
  const indexed = await start(t, "alchemy", FAST_BLOCKS_MS);
  assert.deepEqual(await followHeads(indexed, HEADS, (number) => indexBlock(indexed.url, number)), {
    eth_getBlockReceipts: HEADS,
  });
});

for (const isFull of [false, true]) {
  test(`a client that reads only ${isFull ? "full blocks" : "headers"} at the head costs only the polls`, async (t) => {
    const indexed = await start(t, "alchemy", FAST_BLOCKS_MS);
    const read = async (number: number) => {
      const { body } = await rpc(indexed.url, "eth_getBlockByNumber", [formatQuantity(number), isFull]);
      const [transaction] = Object(body.result).transactions;
      assert.equal(typeof transaction, isFull ? "object" : "string");
    };
    assert.deepEqual(await followHeads(indexed, HEADS, read), {});
  });
}

test("a full block that a poll returned is verified as any other", async (t) => {
  const chain = await TruthChain.create(1, 1);
  t.after(() => chain.lagBound.close());
  const [liar, other] = [await startWorldNode(t, chain), await startWorldNode(t, chain)];
  let lied = 0;
  const lie: Lie = {
    ...{ name: "value", methods: ["eth_getBlockByNumber"] },
    result: (block, { params: [tag, isFull] }) => {
      if (tag !== "latest" || isFull !== true) {
        return block;
      }
      lied++;
      const transactions = Object(block).transactions.map((each: object) => ({ ...each, value: "0x1234567" }));
      return { ...Object(block), transactions };
    },
  };
  liar.fault = { lies: [lie] };
  const nodes = [liar, other].map(({ url }, index) => ({ name: `node${index}`, url, priority: index }));
  const service = await createService({ nodes, blockTimeMs: FAST_BLOCKS_MS, forks: "prague" });
  t.after(() => service.close());
  while (lied === 0) {
    await chain.mine(1);
    const { number } = chain.head;
    const isServed = async () => Number((await rpc(service.url, "eth_blockNumber", [])).body.result) === number;
    await until(isServed, "the head is served");
    const params = [formatQuantity(number), true];
    const [ours, right] = await Promise.all(
      [service, other].map(async ({ url }) => (await rpc(url, "eth_getBlockByNumber", params)).body.result),
    );
    assert.deepEqual(Object(ours).transactions, Object(right).transactions);
  }
});
