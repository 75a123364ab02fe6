import type { BlockId } from "../core/heads.ts";
import type { StateChanges } from "../core/stateReader.ts";
import type { PendingEnvironment } from "../core/view.ts";
import { bloomOfLogs } from "../ethereum/bloom.ts";
import { type Address, type Data, type Hash, ZERO_HASH } from "../ethereum/hex.ts";
import type { Receipt } from "../ethereum/receipt.ts";
import { DEPOSIT_TYPE } from "../ethereum/transaction.ts";
import type { Flashblock, FlashblockReceipt } from "../feed/message.ts";
import type { Execution, ReceiptExtra, UnverifiedReason } from "./execution.ts";

export interface AppliedTransaction {
  readonly raw: Data;
  readonly hash: Hash;
  readonly sender: Address | undefined;
  /** Known where it was executed here or the feed's metadata has it. */
  readonly receipt: Receipt | undefined;
  readonly gasUsed: bigint;
  /** In the block, of this transaction's first log. */
  readonly firstLogIndex: number;
  /** Undefined where the transaction was not executed here. */
  readonly extra: ReceiptExtra | undefined;
}

/** What one message added to its block. */
export interface FlashblockPart {
  readonly message: Flashblock;
  readonly firstTransaction: number;
  readonly transactions: readonly AppliedTransaction[];
  /** Undefined where the message's state is not proven. */
  readonly changes: StateChanges | undefined;
  /** Why it is not. */
  readonly unverified: UnverifiedReason | undefined;
}

/** A block up to one message. Its hash is the message's, or the header's where that is zero: see pendingBlock. */
export interface PendingBlockState {
  readonly environment: PendingEnvironment;
  readonly alsoShown: ExtraBlockFields;
  readonly parts: readonly FlashblockPart[];
  readonly newest: Flashblock;
  readonly transactionsRoot: Hash;
  readonly transactionCount: number;
  readonly logCount: number;
  /** Every transaction has its receipt, so that `logCount` counts all logs. */
  readonly hasAllReceipts: boolean;
}

/** What this chain's nodes show beside the contract's fields. */
export interface ExtraBlockFields {
  /** Fields of a block that do not change: `totalDifficulty`. */
  readonly block?: Readonly<Record<string, string>>;
  /** Transactions have `blockTimestamp`. */
  readonly hasTransactionTimestamp?: boolean;
}

/** The pre-confirmed chain as plain data: what a view is made of. Immutable; nothing in it is copied when it grows. */
export interface PendingChain {
  readonly base: BlockId;
  readonly alsoShown: ExtraBlockFields;
  /** Ascending, unbroken. */
  readonly blocks: readonly PendingBlockState[];
}

const typeOf = (raw: Data): number => {
  const first = Number.parseInt(raw.slice(2, 4), 16);
  return first >= 0xc0 ? 0 : first;
};

/** Deposits: the nonce is in every receipt since Regolith, the version since Canyon (1). */
const receiptOf = (raw: Data, receipt: FlashblockReceipt): Receipt => ({
  type: typeOf(raw),
  status: receipt.status,
  cumulativeGasUsed: receipt.cumulativeGasUsed,
  logs: receipt.logs,
  logsBloom: bloomOfLogs(receipt.logs),
  ...(typeOf(raw) === DEPOSIT_TYPE && receipt.depositNonce !== undefined
    ? { depositNonce: receipt.depositNonce, depositReceiptVersion: 1n }
    : {}),
});

const environmentOf = (message: Flashblock): PendingEnvironment | undefined => {
  const { base } = message;
  if (!base) return undefined;
  const { blockNumber: number, ...rest } = base;
  return { number, ...rest };
};

/**
 * The message's own receipts. A part of them is as good as none: gas and log indexes of one follow from those before it, in
 * this message and in the ones before.
 */
const receiptsOf = (before: PendingBlockState | undefined, { receipts }: Flashblock, { transactions }: Execution) =>
  before?.hasAllReceipts !== false && transactions.every(({ hash }) => receipts?.has(hash)) ? receipts : undefined;

const foldTransactions = (before: PendingBlockState | undefined, message: Flashblock, execution: Execution) => {
  let cumulativeGas = before?.newest.diff.gasUsed ?? 0n;
  let firstLogIndex = before?.logCount ?? 0;
  const toldReceipts = receiptsOf(before, message, execution);
  const transactions = message.diff.transactions.map((raw, position): AppliedTransaction => {
    const { hash, sender } = execution.transactions[position] ?? { hash: ZERO_HASH, sender: undefined };
    const told = toldReceipts?.get(hash);
    const receipt = execution.outcome?.receipts[position] ?? (told && receiptOf(raw, told));
    const folded: AppliedTransaction = {
      raw,
      hash,
      sender,
      receipt,
      gasUsed: receipt ? receipt.cumulativeGasUsed - cumulativeGas : 0n,
      firstLogIndex,
      extra: execution.outcome?.extras[position],
    };
    cumulativeGas = receipt?.cumulativeGasUsed ?? cumulativeGas;
    firstLogIndex += receipt?.logs.length ?? 0;
    return folded;
  });
  const hasAllReceipts = before?.hasAllReceipts !== false && transactions.every(({ receipt }) => receipt !== undefined);
  return { transactions, logCount: firstLogIndex, hasAllReceipts };
};

/** The chain with one more message, which must be the one that follows (feed/sequence). Pure. */
export const applyFlashblock = (chain: PendingChain, message: Flashblock, execution: Execution): PendingChain => {
  const isFirst = message.index === 0;
  const before = isFirst ? undefined : chain.blocks.at(-1);
  const environment = before?.environment ?? environmentOf(message);
  if (!environment) return chain;
  const { transactions, logCount, hasAllReceipts } = foldTransactions(before, message, execution);
  const firstTransaction = before?.transactionCount ?? 0;
  const { outcome, unverified } = execution;
  const part: FlashblockPart = { message, firstTransaction, transactions, changes: outcome?.changes, unverified };
  const block: PendingBlockState = {
    environment,
    alsoShown: chain.alsoShown,
    parts: [...(before?.parts ?? []), part],
    newest: message,
    transactionsRoot: execution.transactionsRoot,
    transactionCount: firstTransaction + transactions.length,
    logCount,
    hasAllReceipts,
  };
  return { ...chain, blocks: [...(isFirst ? chain.blocks : chain.blocks.slice(0, -1)), block] };
};
