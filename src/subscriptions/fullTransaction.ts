import type { Body, PendingBlock } from "../core/view.ts";
import { type Hash, isQuantity } from "../ethereum/hex.ts";
import { asText, type Fields, formatJson, isFields, parseJson } from "../json/jsonBytes.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import { type MatchedLog, matchedLogs } from "./filterIndex.ts";
import { isRefusedRead, mayReadOtherwise } from "./newBlockReads.ts";
import type { RpcReader } from "./sealedLogs.ts";

/** A transaction with its logs and receipt fields, as `newFlashblockTransactions` delivers it. */
export interface FullTransaction {
  readonly body: Body;
  readonly logs: readonly MatchedLog[];
}

/** The fields of its receipt that a full transaction has. */
const RECEIPT_FIELDS = ["logs", "gasUsed", "status", "cumulativeGasUsed", "contractAddress", "logsBloom"];

/** Merges a transaction and its receipt. */
export const formatFullTransaction = (transaction: object, receipt: Record<string, unknown>): FullTransaction => ({
  body: formatJson({ ...transaction, ...Object.fromEntries(RECEIPT_FIELDS.map((name) => [name, receipt[name]])) }),
  logs: matchedLogs(receipt.logs),
});

/** Formats a transaction of a pending block. Returns `undefined` if its receipt is not known yet. */
export const formatPendingTransaction = (block: PendingBlock, index: number): FullTransaction | undefined => {
  const transaction = block.transaction(index);
  const receipt = block.receipt(index);
  if (!transaction || !receipt) {
    return undefined;
  }
  return formatFullTransaction(JSON.parse(asText(transaction)), JSON.parse(asText(receipt)));
};

interface SealedTransaction {
  readonly hash: string;
  readonly transaction: Fields;
  /** The receipt, or only its `logs`. Undefined if no node returns them. */
  readonly receipt: Fields | undefined;
}

export interface SealedTransactions {
  /** The node's JSON text of the block with its transactions. */
  readonly body: Body;
  readonly transactions: readonly SealedTransaction[];
}

const listOf = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.filter(isFields) : []);

/** Parses number and transactions of a node's block. The number is undefined if the block is `null`. */
export const parseTransactions = (
  body: Body,
): { readonly number: bigint | undefined; readonly transactions: readonly Fields[] } => {
  const block = parseJson(body);
  if (!isFields(block)) {
    return { number: undefined, transactions: [] };
  }
  return {
    number: isQuantity(block.number) ? BigInt(block.number) : undefined,
    transactions: listOf(block.transactions),
  };
};

/** Reads a block with its transactions. Rejects if the block is not known yet. */
export const readWholeBlock = async (
  read: RpcReader,
  hash: Hash,
): Promise<{ readonly body: Body; readonly transactions: readonly Fields[] }> => {
  const body = await read("eth_getBlockByHash", [hash, true]);
  const { number, transactions } = parseTransactions(body);
  if (number === undefined) {
    throw unavailable("a new block is not known yet");
  }
  return { body, transactions };
};

type Receipts = ReadonlyMap<unknown, Fields>;

const readBlockReceipts = async (read: RpcReader, blockHash: Hash, count: number): Promise<Receipts> => {
  const receipts = listOf(parseJson(await read("eth_getBlockReceipts", [blockHash])));
  if (receipts.length !== count) {
    throw unavailable("the receipts of a new block are not known yet");
  }
  return new Map(receipts.map((receipt) => [receipt.transactionHash, receipt]));
};

const readLogs = async (read: RpcReader, blockHash: Hash): Promise<Receipts> => {
  const logs = listOf(parseJson(await read("eth_getLogs", [{ blockHash }])));
  return new Map(
    Map.groupBy(logs, ({ transactionHash }) => transactionHash)
      .entries()
      .map(([hash, logsOfTransaction]) => [hash, { logs: logsOfTransaction }]),
  );
};

/**
 * Reads the receipts by transaction hash. Reads only their logs if no node supports eth_getBlockReceipts, or if nodes refuse it.
 * Returns undefined if they refuse the logs too.
 */
const readReceipts = async (
  read: RpcReader,
  blockHash: Hash,
  count: number,
  isRefused: boolean,
): Promise<Receipts | undefined> => {
  try {
    return await readBlockReceipts(read, blockHash, count);
  } catch (error) {
    if (!mayReadOtherwise(error, isRefused)) {
      throw error;
    }
  }
  try {
    return await readLogs(read, blockHash);
  } catch (error) {
    if (isRefused && isRefusedRead(error)) {
      return undefined;
    }
    throw error;
  }
};

/**
 * Reads a sealed block with its transactions, and with its receipts if they are wanted. Rejects if a read fails.
 * `isRefused`: nodes refused such a read repeatedly. What they return of the block is then enough.
 */
export const readSealedTransactions = async (
  read: RpcReader,
  hash: Hash,
  wantsReceipts: () => boolean,
  isRefused: boolean,
): Promise<SealedTransactions> => {
  const { body, transactions } = await readWholeBlock(read, hash);
  const count = transactions.length;
  const receipts: Receipts | undefined =
    wantsReceipts() && count > 0 ? await readReceipts(read, hash, count, isRefused) : new Map();
  return {
    body,
    transactions: transactions.map((transaction) => ({
      hash: String(transaction.hash),
      transaction,
      receipt: receipts && (receipts.get(transaction.hash) ?? { logs: [] }),
    })),
  };
};
