import { formatQuantity } from "../../../src/ethereum/hex.ts";
import { POST_EXEC_TYPE } from "../../../src/ethereum/postExec.ts";
import { type Fields, flip, flipStatus } from "../../support/fakes/answerLie.ts";
import type { FrontResponse } from "../../support/fakes/front.ts";
import { HEAD_LIES, inventedBlocks, latestWith, wrongParent } from "../../support/fakes/headLies.ts";
import type { Lie } from "../../support/fakes/lyingNode.ts";
import { BLOCK_MS } from "../chain/blockTime.ts";
import type { TruthChain } from "../chain/truthChain.ts";
import type { NodeFault } from "./worldNode.ts";

const BLOCK_METHODS = ["eth_getBlockByNumber", "eth_getBlockByHash"];
const MAX_SAWTOOTH_LAG = 8;
/** The lags of the machines behind one URL. */
const MACHINES = [0, 0, 1, 3] as const;
/** A lie of logs leaves out one log in this number. */
const LEFT_OUT = 5;

export const lagging = (blocks: number): NodeFault => ({ lag: () => blocks });

/** Falls behind by one block in each block time, and then has the head again. */
export const sawtooth = (): NodeFault => ({
  lag: () => Math.floor(performance.now() / BLOCK_MS) % (MAX_SAWTOOTH_LAG + 1),
});

/** Each request goes to one of several machines, whose heads differ. */
export const differingMachines = (random: (below: number) => number): NodeFault => ({
  lag: () => MACHINES[random(MACHINES.length)] ?? 0,
});

const answering = (name: string, http: FrontResponse): NodeFault => ({ lies: [{ name, http: () => http }] });

export const refusing = (status: number): NodeFault =>
  answering(`HTTP ${status}`, { status, text: "<html>try again later</html>" });

export const htmlPage: NodeFault = answering("HTML", { status: 200, text: "<html>maintenance</html>" });

const QUOTA = { code: -32_005, message: "daily request count exceeded, request rate limited" };
/** Answers each call with the quota error of a provider, and HTTP status 200. */
export const quotaExceeded: NodeFault = {
  lies: [{ name: "quota", response: (_, { id }) => ({ jsonrpc: "2.0", id, error: QUOTA }) }],
};

const rangeOf = (chain: TruthChain, filter: unknown): number => {
  const { fromBlock, toBlock, blockHash } = Object(filter);
  const numberOf = (tag: unknown): number => (String(tag).startsWith("0x") ? Number(tag) : chain.head.number);
  return blockHash === undefined ? numberOf(toBlock) - numberOf(fromBlock) + 1 : 1;
};

/** Refuses ranges of logs with more blocks, with the text of a provider. */
export const refusingRanges = (chain: TruthChain, maxBlocks: number): NodeFault => ({
  lies: [
    {
      name: `ranges above ${maxBlocks}`,
      methods: ["eth_getLogs"],
      response: (response, { id, params: [filter] }) => {
        const message = `You can make eth_getLogs requests with up to a ${maxBlocks} block range.`;
        return rangeOf(chain, filter) > maxBlocks
          ? { jsonrpc: "2.0", id, error: { code: -32_600, message } }
          : response;
      },
    },
  ],
});

const HISTORY_METHODS = [
  "eth_getTransactionByHash",
  "eth_getTransactionReceipt",
  "eth_getBlockReceipts",
  "eth_getLogs",
] as const;

/** Has the history of this number of its newest blocks, and answers reads of older ones with the error. */
export const pruned = (chain: TruthChain, keptBlocks: number, error: object): NodeFault => ({
  lies: [
    {
      name: "pruned",
      methods: HISTORY_METHODS,
      response: (response, { id }) => {
        const [first] = [response.result].flat();
        const isOld = isFields(first) && Number(first.blockNumber) <= chain.head.number - keptBlocks;
        return isOld ? { jsonrpc: "2.0", id, error } : response;
      },
    },
  ],
});

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const everyItem = (change: (item: Fields) => unknown) => (result: unknown) =>
  Array.isArray(result) ? result.map((item) => (isFields(item) ? change(item) : item)) : result;
const lieOf = (name: string, methods: readonly string[], result: (result: unknown) => unknown): Lie => ({
  ...{ name, methods, result },
});

const POST_EXEC = formatQuantity(POST_EXEC_TYPE);
const whereRefunded = (change: (item: Fields) => unknown) => (item: Fields) =>
  typeof item.opGasRefund === "string" ? change(item) : item;
const wherePostExec = (change: (item: Fields) => unknown) => (item: Fields) =>
  item.type === POST_EXEC ? change(item) : item;
const inObject = (change: (item: Fields) => unknown) => (result: unknown) =>
  isFields(result) ? change(result) : result;
const inTransactions = (change: (item: Fields) => unknown) =>
  inObject((block) => ({ ...block, transactions: everyItem(change)(block.transactions) }));

/** Lies about the gas that blocks give back. */
export const REFUND_LIES: readonly Lie[] = [
  lieOf("another refund", ["eth_getTransactionReceipt"], inObject(whereRefunded(flip("opGasRefund")))),
  lieOf("another refund in a block", ["eth_getBlockReceipts"], everyItem(whereRefunded(flip("opGasRefund")))),
  lieOf("another status of the last one", ["eth_getBlockReceipts"], everyItem(wherePostExec(flipStatus))),
  lieOf("another payload", BLOCK_METHODS, inTransactions(wherePostExec(flip("input")))),
  lieOf("another payload by hash", ["eth_getTransactionByHash"], inObject(wherePostExec(flip("input")))),
  lieOf(
    "a type that nobody knows",
    BLOCK_METHODS,
    inTransactions((item) => ({ ...item, type: "0x55", value: "0x7" })),
  ),
];

/** Lies by the name of their scenario, in the order of the scenarios. The node returns one of them after the other. */
export const LIES: Readonly<Record<string, readonly Lie[]>> = {
  numbers: HEAD_LIES.filter(({ name }) => !name.includes("invented") && name !== "null"),
  hashes: [
    lieOf("another hash", BLOCK_METHODS, (result) => (isFields(result) ? flip("hash")(result) : result)),
    wrongParent,
    latestWith("another hash of the newest block", flip("hash")),
  ],
  receipts: [
    lieOf("another status", ["eth_getTransactionReceipt"], (result) =>
      isFields(result) ? flipStatus(result) : result,
    ),
    lieOf("other gas", ["eth_getTransactionReceipt"], (result) =>
      isFields(result) ? flip("gasUsed")(result) : result,
    ),
    lieOf("another status in a block", ["eth_getBlockReceipts"], everyItem(flipStatus)),
  ],
  logs: [
    lieOf("logs left out", ["eth_getLogs"], (result) =>
      Array.isArray(result) ? result.filter((_, index) => index % LEFT_OUT !== 0) : result,
    ),
  ],
  "empty logs": [lieOf("no logs", ["eth_getLogs"], (result) => (Array.isArray(result) ? [] : result))],
  null: [
    lieOf(
      "null",
      [...BLOCK_METHODS, "eth_getTransactionByHash", "eth_getTransactionReceipt", "eth_getBlockReceipts"],
      () => null,
    ),
  ],
  "invented head": [inventedBlocks("an invented child", 1), inventedBlocks("an invented chain of 5", 5)],
  state: [
    lieOf("other state", ["eth_getBalance", "eth_getTransactionCount"], (result) =>
      typeof result === "string" ? `0x${(BigInt(result) + 1n).toString(16)}` : result,
    ),
  ],
};
