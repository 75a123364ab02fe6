import { formatQuantity } from "../../../src/ethereum/hex.ts";
import type { ChainCall } from "../../support/servers/sealedChain.ts";
import { EMITTER, TOPIC } from "../chain/emitter.ts";
import { SENDERS } from "../chain/openBlock.ts";
import { ancestorAt } from "../chain/sealedBlock.ts";
import type { TruthChain } from "../chain/truthChain.ts";

const MAX_DEPTH = 24;
const SLOT = `0x${"00".repeat(32)}`;

type Below = (limit: number) => number;

/** The tags of reads at the head, and numbers near it. */
const blockParameter = (chain: TruthChain, below: Below): string => {
  const tags = ["latest", "latest", "latest", "pending", "safe", "finalized"];
  return below(2) === 0
    ? (tags[below(tags.length)] ?? "latest")
    : formatQuantity(Math.max(0, chain.head.number + 1 - below(MAX_DEPTH)));
};

const sealedParameter = (chain: TruthChain, below: Below): string => {
  const parameter = blockParameter(chain, below);
  return parameter === "pending" ? "latest" : parameter;
};

const filterOf = (chain: TruthChain, below: Below): object => {
  const { head } = chain;
  const to = head.number - below(4);
  const whose = below(2) === 0 ? { address: EMITTER } : { topics: [TOPIC] };
  const hash = ancestorAt(head, to)?.hash;
  switch (below(4)) {
    case 0:
      return { ...whose, fromBlock: formatQuantity(to), toBlock: "pending" };
    case 1:
      return { ...whose, blockHash: hash };
    case 2:
      return { ...whose, fromBlock: formatQuantity(Math.max(0, to - below(140))), toBlock: "latest" };
    default:
      return {
        ...whose,
        fromBlock: formatQuantity(Math.max(0, to - below(MAX_DEPTH))),
        toBlock: formatQuantity(to),
      };
  }
};

type Question = (chain: TruthChain, below: Below) => ChainCall;

const QUESTIONS: readonly Question[] = [
  () => ({ method: "eth_blockNumber", params: [] }),
  () => ({ method: "eth_blockNumber", params: [] }),
  () => ({ method: "eth_getBlockByNumber", params: ["latest", false] }),
  () => ({ method: "eth_chainId", params: [] }),
  (chain, below) => ({ method: "eth_getBlockByNumber", params: [blockParameter(chain, below), below(2) === 0] }),
  (chain, below) => ({ method: "eth_getBlockByNumber", params: [sealedParameter(chain, below), false] }),
  (chain, below) => ({ method: "eth_getBlockReceipts", params: [sealedParameter(chain, below)] }),
  (chain, below) => ({
    method: "eth_getBlockTransactionCountByNumber",
    params: [sealedParameter(chain, below)],
  }),
  (chain, below) => ({
    method: "eth_getTransactionByBlockNumberAndIndex",
    params: [sealedParameter(chain, below), "0x0"],
  }),
  (chain, below) => ({
    method: "eth_getBlockByHash",
    params: [ancestorAt(chain.head, chain.head.number - below(MAX_DEPTH))?.hash, false],
  }),
  (chain, below) => ({
    method: "eth_getTransactionByHash",
    params: [chain.transactions[below(chain.transactions.length)]],
  }),
  (chain, below) => ({
    method: "eth_getTransactionReceipt",
    params: [chain.transactions[below(chain.transactions.length)]],
  }),
  (chain, below) => ({ method: "eth_getLogs", params: [filterOf(chain, below)] }),
  (chain, below) => ({ method: "eth_getLogs", params: [filterOf(chain, below)] }),
  (chain, below) => ({
    method: "eth_getBalance",
    params: [SENDERS[below(SENDERS.length)], blockParameter(chain, below)],
  }),
  (chain, below) => ({
    method: "eth_getTransactionCount",
    params: [SENDERS[below(SENDERS.length)], blockParameter(chain, below)],
  }),
  (chain, below) => ({ method: "eth_getStorageAt", params: [EMITTER, SLOT, blockParameter(chain, below)] }),
  (chain, below) => ({ method: "eth_getCode", params: [EMITTER, sealedParameter(chain, below)] }),
  (chain, below) => ({ method: "eth_call", params: [{ to: EMITTER }, blockParameter(chain, below)] }),
];

/** Creates a random call, mostly near the head of the chain. */
export const nextQuestion: Question = (chain, below) =>
  QUESTIONS[below(QUESTIONS.length)]?.(chain, below) ?? { method: "eth_blockNumber", params: [] };
