import { formatTransaction } from "../ethereum/formatTransaction.ts";
import { type Address, formatQuantity, type Hash, parseData, ZERO_ADDRESS } from "../ethereum/hex.ts";
import { parseTransaction } from "../ethereum/parseTransaction.ts";
import { formatReceipt } from "../ethereum/receipt.ts";
import { DEPOSIT_TYPE, InvalidTransaction, type Transaction } from "../ethereum/transaction.ts";
import { recoverSender } from "../evm/senders/recoverAddress.ts";
import type { AppliedTransaction, PendingBlockState } from "./applyFlashblock.ts";
import type { ReceiptExtra } from "./execution.ts";
import { L1ReceiptFields } from "./l1ReceiptFields.ts";

/** Returns the sender. The executor has recovered it, unless the execution is late. */
const senderOf = (applied: AppliedTransaction, transaction: Transaction): Address => {
  if (applied.sender !== undefined) {
    return applied.sender;
  }
  return (transaction.type === DEPOSIT_TYPE ? transaction.from : recoverSender(transaction)) ?? ZERO_ADDRESS;
};

/** Returns the receipt fields that a deposit transaction contains. */
const depositFields = ({ receipt }: AppliedTransaction) => {
  if (receipt?.depositNonce === undefined) {
    return {};
  }
  const { depositNonce, depositReceiptVersion } = receipt;
  return { depositNonce, ...(depositReceiptVersion === undefined ? {} : { depositReceiptVersion }) };
};

/** Formats a transaction of an unknown type: the fields that all types have. */
const formatUnknown = (
  { environment, extraBlockFields }: PendingBlockState,
  { hash, raw }: AppliedTransaction,
  index: number,
) => ({
  blockHash: null,
  blockNumber: formatQuantity(environment.number),
  ...(extraBlockFields.hasTransactionTimestamp === true && {
    blockTimestamp: formatQuantity(environment.timestamp),
  }),
  transactionIndex: formatQuantity(index),
  hash,
  type: `0x${raw.slice(2, 4)}`,
});

const formatKnown = (
  { environment, extraBlockFields }: PendingBlockState,
  applied: AppliedTransaction,
  transaction: Transaction,
  index: number,
) => {
  const { number, timestamp, baseFeePerGas } = environment;
  return formatTransaction(transaction, {
    blockHash: null,
    blockNumber: number,
    transactionIndex: index,
    ...(extraBlockFields.hasTransactionTimestamp === true && { blockTimestamp: timestamp }),
    sender: senderOf(applied, transaction),
    baseFee: baseFeePerGas,
    ...depositFields(applied),
    hasDepositYParity: extraBlockFields.deposit?.hasYParity === true,
  });
};

const parse = ({ raw }: AppliedTransaction): Transaction | undefined => {
  try {
    return parseTransaction(parseData(raw));
  } catch (error) {
    if (error instanceof InvalidTransaction) {
      return undefined;
    }
    throw error;
  }
};

/** Formats transactions and receipts of pending blocks as JSON text. Parses and formats each transaction once. */
export class TransactionFormatter {
  readonly #parsed = new WeakMap<AppliedTransaction, Transaction | undefined>();
  readonly #texts = new WeakMap<AppliedTransaction, string>();
  readonly #l1 = new L1ReceiptFields();

  /** The text is the same after each message of the block: a pending transaction has no block hash, because the hash changes. */
  transaction(block: PendingBlockState, applied: AppliedTransaction, index: number): string {
    const cached = this.#texts.get(applied);
    if (cached !== undefined) {
      return cached;
    }
    const transaction = this.#parse(applied);
    const text = JSON.stringify(
      transaction ? formatKnown(block, applied, transaction, index) : formatUnknown(block, applied, index),
    );
    this.#texts.set(applied, text);
    return text;
  }

  /** Returns `undefined` if the receipt is not known, or if the transaction's type is not known. */
  receipt(block: PendingBlockState, blockHash: Hash, applied: AppliedTransaction, index: number): string | undefined {
    const transaction = this.#parse(applied);
    if (!applied.receipt || !transaction) {
      return undefined;
    }
    const { number, timestamp, baseFeePerGas } = block.environment;
    return JSON.stringify(
      formatReceipt(applied.receipt, {
        transaction,
        sender: senderOf(applied, transaction),
        blockHash,
        blockNumber: number,
        blockTimestamp: timestamp,
        transactionIndex: index,
        baseFee: baseFeePerGas,
        gasUsed: applied.gasUsed,
        firstLogIndex: applied.firstLogIndex,
        extra: this.#extraOf(block, applied, transaction),
      }),
    );
  }

  /** The execution returns no fields of deposits, because most nodes have none. */
  #extraOf(block: PendingBlockState, applied: AppliedTransaction, transaction: Transaction): ReceiptExtra {
    const { extra } = applied;
    return extra === undefined || transaction.type === DEPOSIT_TYPE ? this.#l1.of(block, applied, transaction) : extra;
  }

  #parse(applied: AppliedTransaction): Transaction | undefined {
    if (!this.#parsed.has(applied)) {
      this.#parsed.set(applied, parse(applied));
    }
    return this.#parsed.get(applied);
  }
}
