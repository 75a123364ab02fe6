import { createDevnet, type Devnet } from "../../devnet/devnet.ts";
import { devAccounts, startTraffic } from "../../devnet/traffic.ts";

export interface BlockSummary {
  readonly number: string;
  readonly hash: string;
  readonly transactions: readonly string[];
}

/** A real node whose chain has no new blocks, with transactions in its first and last blocks. */
export interface SealedChain {
  readonly devnet: Devnet;
  readonly token: string;
  readonly accounts: readonly string[];
  /** Blocks with transactions, below the finalized head and above it. */
  readonly final: readonly BlockSummary[];
  readonly recent: readonly BlockSummary[];
}

const BUSY_BLOCKS = 8;
const TRANSACTIONS_A_BLOCK = 4;
/** A whole segment of logs. */
const EMPTY_BLOCKS = 140;
/** The blocks above the finalized one are read in one step (`BATCH_BLOCKS` of the backfill), without a pause of a second. */
const EPOCH_SLOTS = 20;

export const createSealedChain = async (emptyBlocks = EMPTY_BLOCKS): Promise<SealedChain> => {
  const devnet = await createDevnet({ manual: true, network: "ethereum", epochSlots: EPOCH_SLOTS });
  const traffic = await startTraffic({ url: devnet.url, chainId: devnet.chainId, rate: 1_000 });
  const sealBusy = async (): Promise<BlockSummary[]> => {
    const blocks: BlockSummary[] = [];
    let sent = traffic.sent;
    while (blocks.length < BUSY_BLOCKS) {
      await devnet.step();
      if (traffic.sent < sent + TRANSACTIONS_A_BLOCK) {
        continue;
      }
      sent = traffic.sent;
      await devnet.step();
      const { number, hash, block } = await devnet.sealNow();
      if (block.transactions.length > 0) {
        blocks.push({ number: `0x${number.toString(16)}`, hash, transactions: block.transactions });
      }
    }
    return blocks;
  };
  const final = await sealBusy();
  await devnet.rpc("anvil_mine", `0x${emptyBlocks.toString(16)}`);
  const recent = await sealBusy();
  await traffic.stop();
  await devnet.sealNow();
  return { devnet, token: traffic.token, accounts: devAccounts.map(({ address }) => address), final, recent };
};

export interface ChainCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

const slot = (index: number): string => `0x${index.toString(16).padStart(64, "0")}`;
const word = (address: string): string => address.slice(2).toLowerCase().padStart(64, "0");
const BALANCE_OF = "0x70a08231";

/** The reads at one block. `at` is its number, which forebay replaces by the hash if the block is recent. */
const callsAt = (block: BlockSummary, account: string, token: string): ChainCall[] => {
  const { number: at, hash, transactions } = block;
  const call = { from: account, to: token, data: BALANCE_OF + word(account) };
  return [
    ["eth_getBlockByNumber", at, false],
    ["eth_getBlockByNumber", at, true],
    ["eth_getBlockByHash", hash, true],
    ["eth_getBlockTransactionCountByNumber", at],
    ["eth_getBlockTransactionCountByHash", hash],
    ["eth_getUncleCountByBlockNumber", at],
    ["eth_getUncleCountByBlockHash", hash],
    ["eth_getTransactionByBlockNumberAndIndex", at, "0x0"],
    ["eth_getTransactionByBlockHashAndIndex", hash, "0x0"],
    ["eth_getRawTransactionByBlockNumberAndIndex", at, "0x0"],
    ["eth_getRawTransactionByBlockHashAndIndex", hash, "0x0"],
    ["eth_getBlockReceipts", at],
    ["eth_getLogs", { blockHash: hash }],
    ["eth_getLogs", { blockHash: hash, address: token }],
    ["eth_feeHistory", "0x4", at, [10, 50]],
    ["eth_getBalance", account, at],
    ["eth_getTransactionCount", account, at],
    ["eth_getCode", token, at],
    ["eth_getStorageAt", token, slot(1), at],
    ["eth_getProof", account, [slot(0)], at],
    ["eth_getAccount", account, at],
    ["eth_getAccountInfo", account, at],
    ["eth_getStorageValues", { [token]: [slot(0), slot(1)] }, at],
    ["eth_call", call, at],
    ["eth_estimateGas", call, at],
    ["eth_createAccessList", call, at],
    ["trace_block", at],
    ["debug_traceBlockByHash", hash],
    ["debug_traceBlockByNumber", at],
    ...transactions.flatMap((transaction): [string, string][] => [
      ["eth_getTransactionByHash", transaction],
      ["eth_getTransactionReceipt", transaction],
      ["eth_getRawTransactionByHash", transaction],
    ]),
  ].map(([method, ...params]) => ({ method: String(method), params }));
};

const ONCE: readonly ChainCall[] = [
  ["eth_blockNumber"],
  ["eth_chainId"],
  ["net_version"],
  ["eth_gasPrice"],
  ["eth_maxPriorityFeePerGas"],
  ["eth_blobBaseFee"],
  ["eth_feeHistory", "0x4", "latest", []],
  ["eth_getBlockByNumber", "latest", false],
  ["eth_getBlockByNumber", "finalized", false],
  ["eth_getBlockByNumber", "safe", false],
  ["eth_getBlockByNumber", "earliest", true],
  // Whole segments only: the unfinished segment at the head is fetched each time.
  ["eth_getLogs", { fromBlock: "0x0", toBlock: "0x7f" }],
  ["eth_getLogs", { fromBlock: "0x1", toBlock: "0x40" }],
].map(([method, ...params]) => ({ method: String(method), params }));

/** Creates `count` or more distinct calls of many methods, by final and by recent number. All responses can be cached. */
export const cacheableCallsOf = ({ final, recent, accounts, token }: SealedChain, count: number): ChainCall[] => {
  const distinct = new Map<string, ChainCall>();
  const add = (call: ChainCall) => distinct.set(JSON.stringify(call), call);
  for (const call of ONCE) {
    add(call);
  }
  for (const account of accounts) {
    for (const block of [...final, ...recent]) {
      for (const call of callsAt(block, account, token)) {
        add(call);
      }
    }
    // A trace does not contain its block, so it is cached once that block is final.
    for (const { transactions } of final) {
      for (const hash of transactions) {
        add({ method: "debug_traceTransaction", params: [hash] });
        add({ method: "trace_transaction", params: [hash] });
      }
    }
    if (distinct.size >= count) {
      break;
    }
  }
  return [...distinct.values()];
};

/** Cached until the next head, or only in the memory of the replica. */
const OF_THE_HEAD =
  /^(eth_chainId|net_version|eth_blockNumber|eth_gasPrice|eth_maxPriorityFeePerGas|eth_blobBaseFee|eth_feeHistory)$/;
const OF_THE_STATE =
  /^eth_(getBalance|getTransactionCount|getCode|getStorage|getProof|getAccount|call|estimateGas|createAccessList)/;

/** Creates the calls of `cacheableCallsOf` whose responses replicas share. State is shared only if it is final. */
export const sharedCallsOf = (chain: SealedChain, count: number): ChainCall[] => {
  const recent = new Set(chain.recent.map(({ number }) => number));
  return cacheableCallsOf(chain, 2 * count)
    .filter(({ method, params }) => {
      if (OF_THE_HEAD.test(method)) {
        return false;
      }
      return !OF_THE_STATE.test(method) || !params.some((param) => recent.has(String(param)));
    })
    .slice(0, count);
};
