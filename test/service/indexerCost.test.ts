import assert from "node:assert/strict";
import { test } from "node:test";
import { type IndexedChain, indexBlock, startIndexedChain } from "../support/servers/indexedChain.ts";
import { createService } from "../support/servers/service.ts";

/** No block is due meanwhile. */
const BLOCK_TIME_MS = 60_000;
const BLOCKS = 150;
const INDEXED = 30;
const LOGS_OF = ["eth_getLogs", "eth_getBlockReceipts", "eth_getBlockByHash"];

const start = async (t: Parameters<typeof startIndexedChain>[0], prices: "alchemy" | "infura") => {
  const indexed = await startIndexedChain(t, BLOCKS);
  const { url } = await createServiceOf(t, indexed, prices);
  return { ...indexed, url };
};

const createServiceOf = async (
  t: Parameters<typeof startIndexedChain>[0],
  { url }: Pick<IndexedChain, "url">,
  prices: "alchemy" | "infura",
) => {
  const options = { blockTimeMs: BLOCK_TIME_MS, forks: "prague" as const };
  const service = await createService({ nodes: [{ url }], ...options }, { usage: { prices } });
  t.after(() => service.close());
  return service;
};

const countsOf = ({ calls }: Pick<IndexedChain, "calls">, names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, calls.get(name) ?? 0]));

test("an indexer of old blocks costs their receipts beside the blocks, if logs cost more", async (t) => {
  const indexed = await start(t, "alchemy");
  for (let number = 1; number <= INDEXED; number++) {
    const logs = await indexBlock(indexed.url, number);
    assert.deepEqual(logs, indexed.chain.blocksBetween(number, number)[0]?.logs);
  }
  assert.deepEqual(countsOf(indexed, LOGS_OF), {
    eth_getLogs: 0,
    eth_getBlockReceipts: INDEXED,
    eth_getBlockByHash: 0,
  });
});

test("an indexer of old blocks costs their logs beside the blocks, if receipts cost more", async (t) => {
  const indexed = await start(t, "infura");
  for (let number = 1; number <= INDEXED; number++) {
    const logs = await indexBlock(indexed.url, number);
    assert.deepEqual(logs, indexed.chain.blocksBetween(number, number)[0]?.logs);
  }
  assert.deepEqual(countsOf(indexed, LOGS_OF), {
    eth_getLogs: INDEXED,
    eth_getBlockReceipts: 0,
    eth_getBlockByHash: 0,
  });
});

test("logs that the bloom of a read block excludes cost nothing", async (t) => {
  const indexed = await start(t, "alchemy");
  for (let number = 1; number <= INDEXED; number++) {
    assert.deepEqual(await indexBlock(indexed.url, number, { address: `0x${"00".repeat(20)}` }), []);
  }
  assert.deepEqual(countsOf(indexed, LOGS_OF), {
    eth_getLogs: 0,
    eth_getBlockReceipts: 0,
    eth_getBlockByHash: 0,
  });
});
