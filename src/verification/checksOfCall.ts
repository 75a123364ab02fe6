import type { RpcRequest } from "../core/rpcSource.ts";
import { isHash, isQuantity } from "../ethereum/hex.ts";
import type { Call } from "../jsonrpc/call.ts";
import type { ExpectedLocation, Task } from "./checkBody.ts";

const isTag = (value: unknown): boolean => typeof value === "string" && !value.startsWith("0x");

const blockHashOf = (value: unknown): unknown =>
  typeof value === "object" && value !== null && "blockHash" in value ? value.blockHash : undefined;

/**
 * Where a call says that its answer must be from: its first parameter is a block's number, hash, or `{blockHash}`. The last is
 * not held against a node where the number is known too: one that does not take this form is asked by number.
 */
const blockPlace = ({ params: [first] }: Call, { block }: RpcRequest): ExpectedLocation => {
  const hash = block === undefined ? (blockHashOf(first) ?? first) : first;
  const number = block?.number ?? (isQuantity(first) && !isHash(first) ? BigInt(first) : undefined);
  return { ...(isHash(hash) && { hash }), ...(number !== undefined && { number }) };
};

const indexOf = ([, index]: readonly unknown[]): Pick<ExpectedLocation, "index"> =>
  isQuantity(index) ? { index: BigInt(index) } : {};

const transactionHash = ([first]: readonly unknown[]): string => String(first);

const JSON_ALONE: Task = { kind: "json" };

type MakeTask = (call: Call, question: RpcRequest, computes: boolean) => Task;

const block: MakeTask = (call, question, computes) =>
  // The block that is being built has no hash and no roots yet.
  isTag(call.params[0]) ? JSON_ALONE : { kind: "block", place: blockPlace(call, question), computes };
const transactionAt: MakeTask = (call, question, computes) =>
  isTag(call.params[0])
    ? JSON_ALONE
    : { kind: "transaction", place: { ...blockPlace(call, question), ...indexOf(call.params) }, computes };

const raw: MakeTask = ({ params }, _, computes) =>
  computes ? { kind: "raw", hash: transactionHash(params) } : JSON_ALONE;

const TASKS = new Map<string, MakeTask>([
  ["eth_getBlockByNumber", block],
  ["eth_getBlockByHash", block],
  ["eth_getHeaderByNumber", block],
  ["eth_getHeaderByHash", block],
  ["eth_getTransactionByBlockNumberAndIndex", transactionAt],
  ["eth_getTransactionByBlockHashAndIndex", transactionAt],
  [
    "eth_getTransactionByHash",
    ({ params }, _, computes) => ({ kind: "transaction", hash: transactionHash(params), place: {}, computes }),
  ],
  [
    "eth_getTransactionReceipt",
    ({ params }, _, computes) => ({ kind: "receipt", hash: transactionHash(params), computes }),
  ],
  [
    "eth_getBlockReceipts",
    (call, question) =>
      isTag(call.params[0]) ? JSON_ALONE : { kind: "receipts", place: blockPlace(call, question), header: undefined },
  ],
  ["eth_getRawTransactionByHash", raw],
  ["debug_getRawTransaction", raw],
]);

/** The checks of the response to a call. Every response must be JSON. */
export const taskOf = (call: Call, question: RpcRequest, computes: boolean): Task =>
  TASKS.get(call.method)?.(call, question, computes) ?? JSON_ALONE;
