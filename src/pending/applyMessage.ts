import type { BlockId } from "../core/heads.ts";
import type { StateChanges } from "../core/stateReader.ts";
import type { PendingEnvironment } from "../core/view.ts";
import { bloomOfLogs } from "../ethereum/bloom.ts";
import { type Address, type Data, type Hash, ZERO_HASH } from "../ethereum/hex.ts";
import type { Receipt } from "../ethereum/receipt.ts";
import { DEPOSIT_TYPE } from "../ethereum/transaction.ts";
import type { FeedMessage, FeedReceipt } from "../feed/feedMessage.ts";
import type { Execution, UnverifiedReason } from "./executableMessage.ts";

/** A transaction of a pending block. */
export interface AppliedTransaction {
  readonly raw: Data;
  readonly hash: Hash;
  readonly sender: Address | undefined;
  /** Known if the transaction was executed, or if the feed's metadata contains the receipt. */
  readonly receipt: Receipt | undefined;
  readonly gasUsed: bigint;
  /** The index in the block of this transaction's first log. */
  readonly firstLogIndex: number;
  /** Gas that the block's last transaction gives back. */
  readonly refund: bigint;
}

/** The part of a block that one message added. */
export interface BlockPart {
  readonly message: FeedMessage;
  readonly firstTransaction: number;
  readonly transactions: readonly AppliedTransaction[];
  /** The writes of the transactions. `undefined` if they are not verified. */
  readonly changes: StateChanges | undefined;
  /** Why the state is not verified. */
  readonly unverified: UnverifiedReason | undefined;
}

/** A block up to one message. Its hash is the message's, or the header's if the message has none: see BlockFormatter. */
export interface PendingBlockState {
  readonly environment: PendingEnvironment;
  readonly extraBlockFields: ExtraBlockFields;
  readonly parts: readonly BlockPart[];
  readonly newest: FeedMessage;
  readonly transactionsRoot: Hash;
  readonly transactionCount: number;
  readonly logCount: number;
  /** Every transaction has its receipt, so `logCount` is complete. */
  readonly hasAllReceipts: boolean;
}

/** Fields that the chain's nodes return beside those of docs/methods.md, Block object. */
export interface ExtraBlockFields {
  /** Block fields that do not change from block to block: `totalDifficulty`. */
  readonly block?: Readonly<Record<string, string>>;
  /** Whether transactions have `blockTimestamp`. */
  readonly hasTransactionTimestamp?: boolean;
  /** Default: deposits have the fields of op-geth. */
  readonly deposit?: DepositFields | undefined;
}

/** The fields that the chain's nodes return for deposits. */
export interface DepositFields {
  readonly hasYParity: boolean;
  /** The names of the fields of a deposit's receipt. */
  readonly receipt: readonly string[];
}

/** The pre-confirmed chain as plain data. It is immutable, and its parts are shared with the longer chains made from it. */
export interface PendingChain {
  readonly base: BlockId;
  readonly extraBlockFields: ExtraBlockFields;
  /** Ascending, without gaps. */
  readonly blocks: readonly PendingBlockState[];
}

const typeOf = (raw: Data): number => {
  const first = Number.parseInt(raw.slice(2, 4), 16);
  return first >= 0xc0 ? 0 : first;
};

/** Receipts of deposits have the nonce since Regolith and the version (1) since Canyon. */
const receiptOf = (raw: Data, receipt: FeedReceipt): Receipt => ({
  type: typeOf(raw),
  status: receipt.status,
  cumulativeGasUsed: receipt.cumulativeGasUsed,
  logs: receipt.logs,
  logsBloom: bloomOfLogs(receipt.logs),
  ...(typeOf(raw) === DEPOSIT_TYPE && receipt.depositNonce !== undefined
    ? { depositNonce: receipt.depositNonce, depositReceiptVersion: 1n }
    : {}),
});

/**
 * Returns the message's receipts if all are known, from the block's start on. Gas and log indexes of a transaction
 * depend on the receipts of all transactions before it.
 */
const receiptsOf = (before: PendingBlockState | undefined, { receipts }: FeedMessage, { transactions }: Execution) =>
  before?.hasAllReceipts !== false && transactions.every(({ hash }) => receipts?.has(hash)) ? receipts : undefined;

/** Returns the gas of a block's transactions. A message may name another amount than its receipts. */
const gasOf = (block: PendingBlockState | undefined): bigint => {
  const last = block?.parts.findLast(({ transactions }) => transactions.length > 0)?.transactions.at(-1);
  return block === undefined || last === undefined
    ? 0n
    : (last.receipt?.cumulativeGasUsed ?? block.newest.commitments.gasUsed);
};

const applyTransactions = (before: PendingBlockState | undefined, message: FeedMessage, execution: Execution) => {
  let cumulativeGas = gasOf(before);
  let firstLogIndex = before?.logCount ?? 0;
  const feedReceipts = receiptsOf(before, message, execution);
  const transactions = message.transactions.map((raw, position): AppliedTransaction => {
    const { hash, sender } = execution.transactions[position] ?? { hash: ZERO_HASH, sender: undefined };
    const outcome = execution.outcomes?.[position];
    const feedReceipt = feedReceipts?.get(hash);
    const receipt = outcome?.receipt ?? (feedReceipt && receiptOf(raw, feedReceipt));
    const applied: AppliedTransaction = {
      raw,
      hash,
      sender,
      receipt,
      gasUsed: receipt ? receipt.cumulativeGasUsed - cumulativeGas : 0n,
      firstLogIndex,
      refund: outcome?.refund ?? 0n,
    };
    cumulativeGas = receipt?.cumulativeGasUsed ?? cumulativeGas;
    firstLogIndex += receipt?.logs.length ?? 0;
    return applied;
  });
  const hasAllReceipts = before?.hasAllReceipts !== false && transactions.every(({ receipt }) => receipt !== undefined);
  return { transactions, logCount: firstLogIndex, hasAllReceipts };
};

/** Whether the state after each of these blocks is verified. */
export const isExecuted = (blocks: readonly PendingBlockState[]): boolean =>
  blocks.every(({ parts }) => parts.every(({ changes }) => changes !== undefined));

/** Returns the block with other receipts, because a message has changed the refunds of earlier transactions. */
const withRevised = (
  block: PendingBlockState | undefined,
  revised: Execution["revised"],
): PendingBlockState | undefined => {
  if (block === undefined || revised === undefined) {
    return block;
  }
  const gasBefore = (index: number): bigint => revised[index - 1]?.receipt.cumulativeGasUsed ?? 0n;
  const parts = block.parts.map((part): BlockPart => {
    const transactions = part.transactions.map((applied, position) => {
      const index = part.firstTransaction + position;
      const outcome = revised[index];
      return outcome
        ? { ...applied, ...outcome, gasUsed: outcome.receipt.cumulativeGasUsed - gasBefore(index) }
        : applied;
    });
    return { ...part, transactions };
  });
  return { ...block, parts };
};

/** Appends one message to the chain. It must be the next one (feed/sequence). Pure. */
export const applyMessage = (chain: PendingChain, message: FeedMessage, execution: Execution): PendingChain => {
  const isFirst = message.index === 0;
  const before = isFirst ? undefined : withRevised(chain.blocks.at(-1), execution.revised);
  const environment = before?.environment ?? message.environment;
  if (!environment) {
    return chain;
  }
  const { transactions, logCount, hasAllReceipts } = applyTransactions(before, message, execution);
  const firstTransaction = before?.transactionCount ?? 0;
  const { changes, unverified } = execution;
  const part: BlockPart = { message, firstTransaction, transactions, changes, unverified };
  const block: PendingBlockState = {
    environment,
    extraBlockFields: chain.extraBlockFields,
    parts: [...(before?.parts ?? []), part],
    newest: message,
    transactionsRoot: execution.transactionsRoot,
    transactionCount: firstTransaction + transactions.length,
    logCount,
    hasAllReceipts,
  };
  return { ...chain, blocks: [...(isFirst ? chain.blocks : chain.blocks.slice(0, -1)), block] };
};
