import type { Body } from "../core/view.ts";
import { type Hash, isQuantity } from "../ethereum/hex.ts";
import { RpcError } from "../jsonrpc/rpcError.ts";
import type { Ask } from "./sealedLogs.ts";

type Fields = Readonly<Record<string, unknown>>;

export interface SealedTransaction {
  readonly hash: string;
  readonly transaction: Fields;
  /** Its logs at least. */
  readonly receipt: Fields;
}

export interface SealedTransactions {
  /** The block with its transactions, as the nodes give it. */
  readonly body: Body;
  readonly transactions: readonly SealedTransaction[];
}

const decoder = new TextDecoder();

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null;
const parse = (text: Uint8Array): unknown => JSON.parse(decoder.decode(text));
const listOf = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.filter(isFields) : []);

/** The number and the transactions of a block as nodes give it; no number for `null`. */
export const parseTransactions = (
  body: Body,
): { readonly number: bigint | undefined; readonly transactions: readonly Fields[] } => {
  const block = parse(body);
  if (!isFields(block)) return { number: undefined, transactions: [] };
  return {
    number: isQuantity(block.number) ? BigInt(block.number) : undefined,
    transactions: listOf(block.transactions),
  };
};

/** Receipts by transaction; from a node that does not give all receipts of a block, their logs alone. */
const readReceipts = async (ask: Ask, blockHash: Hash): Promise<ReadonlyMap<unknown, Fields>> => {
  try {
    const receipts = listOf(parse(await ask("eth_getBlockReceipts", [blockHash])));
    return new Map(receipts.map((receipt) => [receipt.transactionHash, receipt]));
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    const logs = listOf(parse(await ask("eth_getLogs", [{ blockHash }])));
    return new Map(
      Map.groupBy(logs, ({ transactionHash }) => transactionHash)
        .entries()
        .map(([hash, of]) => [hash, { logs: of }]),
    );
  }
};

/** A sealed block whole; receipts are asked for only where they are wanted. */
export const readSealedTransactions = async (
  ask: Ask,
  hash: Hash,
  wantsReceipts: () => boolean,
): Promise<SealedTransactions> => {
  const body = await ask("eth_getBlockByHash", [hash, true]);
  const { transactions } = parseTransactions(body);
  const receipts =
    wantsReceipts() && transactions.length > 0 ? await readReceipts(ask, hash) : new Map<unknown, Fields>();
  return {
    body,
    transactions: transactions.map((transaction) => ({
      hash: String(transaction.hash),
      transaction,
      receipt: receipts.get(transaction.hash) ?? { logs: [] },
    })),
  };
};
