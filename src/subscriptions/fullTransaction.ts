import type { Body, PendingBlock } from "../core/view.ts";
import type { MatchedLog } from "../ethereum/logIndex.ts";
import { matchedLogs } from "./subscribedLog.ts";

/** A transaction with its logs and receipt fields, as `newFlashblockTransactions` delivers it. */
export interface FullTransaction {
  readonly body: Body;
  readonly logs: readonly MatchedLog[];
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Selects the receipt fields that a full transaction contains. */
const receiptFields = ({
  logs,
  gasUsed,
  status,
  cumulativeGasUsed,
  contractAddress,
  logsBloom,
}: Record<string, unknown>) => ({
  logs,
  gasUsed,
  status,
  cumulativeGasUsed,
  contractAddress,
  logsBloom,
});

/** Merges a transaction and its receipt. */
export const formatFullTransaction = (transaction: object, receipt: Record<string, unknown>): FullTransaction => ({
  body: encoder.encode(JSON.stringify({ ...transaction, ...receiptFields(receipt) })),
  logs: matchedLogs(receipt.logs),
});

/** Formats a transaction of a pending block. Returns `undefined` if its receipt is not known yet. */
export const formatPendingTransaction = (block: PendingBlock, index: number): FullTransaction | undefined => {
  const transaction = block.transaction(index);
  const receipt = block.receipt(index);
  if (!transaction || !receipt) {
    return undefined;
  }
  return formatFullTransaction(JSON.parse(decoder.decode(transaction)), JSON.parse(decoder.decode(receipt)));
};
