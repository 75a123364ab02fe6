import { bloomOfLogs } from "../../src/ethereum/bloom.ts";
import { formatData } from "../../src/ethereum/hex.ts";
import { type AnswerLie, type Change, type Fields, flip, flipStatus } from "../support/fakes/answerLie.ts";
import type { AskTruth } from "../support/fakes/lyingNode.ts";
import type { BlockSummary, ChainCall } from "../support/servers/sealedChain.ts";

const METHOD = "eth_getTransactionReceipt";
/** An address that no log of the chain has. */
const NO_CONTRACT = `0x${"0".repeat(36)}dead` as const;

const logsOf = ({ logs }: Fields): readonly Fields[] => logs as readonly Fields[];

const withLogs =
  (change: Change): Change =>
  (receipt) => ({ ...receipt, logs: logsOf(receipt).map(change) });

/** A receipt with one log that its transaction did not emit. The bloom of the receipt is that of this log. */
const withInventedLog: Change = (receipt) => {
  const { blockHash, blockNumber, transactionHash, transactionIndex } = receipt;
  const log = { address: NO_CONTRACT, topics: [], data: "0x", logIndex: "0x0", removed: false } as const;
  const logs = [{ ...log, blockHash, blockNumber, transactionHash, transactionIndex }];
  return { ...receipt, logs, logsBloom: formatData(bloomOfLogs(logs)) };
};

/** The receipt of another transaction of the block, under the requested hash. */
const renamed = (other: string) => async (result: unknown, _: unknown, truth: AskTruth) => {
  const { transactionHash } = result as Fields;
  const receipt = (await truth(METHOD, [other])) as Fields;
  return { ...receipt, transactionHash, logs: logsOf(receipt).map((log) => ({ ...log, transactionHash })) };
};

/** Wrong fields of a receipt by hash that only the other receipts of its block, or its header, disprove. */
export const changesInReceipt = (block: BlockSummary, recent: BlockSummary): readonly AnswerLie[] => {
  const receipts: ChainCall = { method: "eth_getBlockReceipts", params: [block.number] };
  // The first transaction of the chain creates a contract, with logs.
  const [hash = "", other = ""] = block.transactions;
  const call: ChainCall = { method: METHOD, params: [hash] };
  const lieOf = (name: string, result: AnswerLie["lie"]["result"]): AnswerLie["lie"] => ({
    name: `a receipt with ${name}`,
    methods: [METHOD],
    ...(result && { result }),
  });
  const inBlock = (name: string, change: Change): AnswerLie => ({
    ...{ call, before: receipts, check: "transaction" },
    lie: lieOf(`${name} than in the receipts of its block`, (result) => change(result as Fields)),
  });
  return [
    inBlock("another status", flipStatus),
    inBlock("other gas", flip("gasUsed")),
    inBlock("other cumulative gas", flip("cumulativeGasUsed")),
    inBlock("another type", (receipt) => ({ ...receipt, type: receipt.type === "0x1" ? "0x2" : "0x1" })),
    inBlock("other data of its logs", withLogs(flip("data"))),
    inBlock(
      "other indexes of its logs",
      withLogs((log) => ({ ...log, logIndex: `0x${(Number(log.logIndex) + 1).toString(16)}` })),
    ),
    inBlock("another block number", flip("blockNumber")),
    {
      ...{ call, before: receipts, check: "transaction" },
      lie: lieOf("the index and content of another one of its block", renamed(other)),
    },
    {
      ...{ call: { method: METHOD, params: [recent.transactions[0]] }, check: "transaction" },
      lie: lieOf("a log that the bloom of its block does not admit", (result) => withInventedLog(result as Fields)),
    },
  ];
};
