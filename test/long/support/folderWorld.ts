import type { z } from "zod";
import type { configSchema } from "../../../src/config/schema.ts";
import type { Address } from "../../../src/ethereum/hex.ts";
import { addressOf } from "../../support/builders/stateModel.ts";
import { askAll } from "../../support/clients/askAll.ts";
import type { Lifespan } from "../../support/servers/redis.ts";
import { type ChainCall, createSealedChain } from "../../support/servers/sealedChain.ts";
import { startWorldNode } from "../../world/nodes/worldNode.ts";
import { StandInChain } from "../../world/state/standInChain.ts";

type Config = z.input<typeof configSchema>;

/** Empty blocks: the finalized one is above two whole segments of logs. */
const EMPTY_BLOCKS = 300;
const FINAL_BLOCKS = 255;
const ACCOUNTS = 16;
const BLOCK_MS = 1_000;
/** The configured block time. Reads wait for half of it, so that none is late on a busy machine. Heads are pushed. */
const LONG_MS = 20_000;

/** Two chains: one with final blocks for the cache, and one with state that changes. */
export interface FolderWorld {
  /** Calls about final blocks, in a fixed order. */
  readonly calls: readonly ChainCall[];
  /** Returns the node's result of a call. */
  truthOf(call: ChainCall): string | undefined;
  readonly accounts: readonly Address[];
  /** Returns the balance of an account after a block of the chain with state. */
  balanceAt(hash: unknown, account: Address): string | undefined;
  /** The number of the newest block of the chain with state. */
  height(): number;
  /** Whether new blocks with new balances are mined. */
  mines: boolean;
  configOf(folder: string): Config;
}

const quantity = (value: number): string => `0x${value.toString(16)}`;

/** Creates calls about final blocks that a node answers and a cache keeps. */
const createCalls = (token: string, transactions: readonly string[]): ChainCall[] => {
  const calls = Array.from({ length: FINAL_BLOCKS }, (_, number): ChainCall[] => {
    const at = quantity(number + 1);
    return [
      { method: "eth_getBlockByNumber", params: [at, false] },
      { method: "eth_getBlockReceipts", params: [at] },
      { method: "eth_getBlockByNumber", params: [at, true] },
      { method: "eth_getBlockTransactionCountByNumber", params: [at] },
      { method: "eth_getUncleCountByBlockNumber", params: [at] },
    ];
  });
  const logs = [{}, { address: token }].flatMap((filter): ChainCall[] => [
    { method: "eth_getLogs", params: [{ ...filter, fromBlock: "0x0", toBlock: "0x7f" }] },
    { method: "eth_getLogs", params: [{ ...filter, fromBlock: "0x80", toBlock: "0xff" }] },
  ]);
  const receipts = transactions.map((hash) => ({ method: "eth_getTransactionReceipt", params: [hash] }));
  return [...logs, ...receipts, ...calls.flat()];
};

const createStateChain = async (t: Lifespan) => {
  const accounts = Array.from({ length: ACCOUNTS }, (_, index) => addressOf(index));
  const chain = new StandInChain("amsterdam");
  chain.mine(accounts.map((account) => [account, 1n]));
  const node = await startWorldNode(t, chain);
  return { accounts, chain, node };
};

/** Creates both nodes. They end with the test. The truth is read from them, so that no answer of forebay decides what is right. */
export const createFolderWorld = async (t: Lifespan): Promise<FolderWorld> => {
  const sealed = await createSealedChain(EMPTY_BLOCKS);
  const { devnet, token, final } = sealed;
  t.after(() => devnet.close());
  const calls = createCalls(
    token,
    final.flatMap(({ transactions }) => transactions),
  );
  const truth = new Map((await askAll(devnet.anvilUrl, calls)).map(({ call, result }) => [call, result]));
  const { accounts, chain, node } = await createStateChain(t);
  const world: FolderWorld = {
    calls,
    truthOf: (call) => truth.get(call),
    accounts,
    balanceAt: (hash, account) => {
      const block = chain.block(hash);
      return block && quantity(Number(chain.stateAt(block.hash).balance(account)));
    },
    height: () => chain.height,
    mines: true,
    configOf: (folder) => ({
      chains: [
        { name: "sealed", nodes: [{ url: devnet.anvilUrl, name: "own" }], pending: { mode: "node" } },
        {
          name: "state",
          nodes: [{ url: node.url, wsUrl: node.wsUrl, name: "own" }],
          blockTimeMs: LONG_MS,
          state: { waitMs: LONG_MS },
        },
      ],
      // Without entries in memory, each hit is one from the disk.
      cache: { memoryBytes: 0, disk: "always" },
      server: { dataDir: folder },
      log: { level: "info" },
    }),
  };
  const mining = setInterval(() => {
    if (world.mines) {
      const height = chain.height;
      const account = accounts[height % ACCOUNTS] ?? addressOf(0);
      chain.mine([[account, BigInt(height)]]);
    }
  }, BLOCK_MS);
  t.after(() => clearInterval(mining));
  return world;
};
