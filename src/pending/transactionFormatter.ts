import { formatTransaction } from "../ethereum/formatTransaction.ts";
import { type Address, formatQuantity, type Hash, parseData, ZERO_ADDRESS } from "../ethereum/hex.ts";
import { L1_BLOCK, type L1Attributes, l1AttributesFork, parseL1Attributes } from "../ethereum/opFees.ts";
import { parseTransaction } from "../ethereum/parseTransaction.ts";
import { formatReceipt } from "../ethereum/receipt.ts";
import type { Rules } from "../ethereum/rules.ts";
import { DEPOSIT_TYPE, InvalidTransaction, type Transaction } from "../ethereum/transaction.ts";
import { recoverSender } from "../evm/senders/recoverAddress.ts";
import type { AppliedTransaction, BlockPart, PendingBlockState } from "./applyMessage.ts";
import type { ReceiptExtra } from "./execution.ts";
import { opReceiptExtra } from "./opReceipt.ts";

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
  type: formatQuantity(BigInt(parseData(raw)[0] ?? 0)),
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

interface BlockL1 {
  readonly rules: Rules;
  readonly attributes: L1Attributes;
}

/** Parses the L1 attributes of a part's first transaction: the deposit at the start of every block of an OP-stack chain. */
const parseFirst = ({ transactions: [first] }: BlockPart): BlockL1 | undefined => {
  if (first === undefined) {
    return undefined;
  }
  try {
    const transaction = parseTransaction(parseData(first.raw));
    if (transaction.type !== DEPOSIT_TYPE || transaction.to !== L1_BLOCK) {
      return undefined;
    }
    const op = l1AttributesFork(transaction.input);
    if (op === undefined) {
      return undefined;
    }
    return { rules: { chainId: 0n, fork: "prague", op }, attributes: parseL1Attributes(transaction.input) };
  } catch (error) {
    if (error instanceof InvalidTransaction) {
      return undefined;
    }
    throw error;
  }
};

/** A deposit pays no L1 fee. op-geth's receipts of deposits have none of these fields, those of op-reth have all. */
const ofDeposit = (extra: ReceiptExtra, names: readonly string[]): ReceiptExtra => {
  const fields = Object.entries({ ...extra, l1Fee: "0x0" });
  return Object.fromEntries(fields.filter(([name]) => names.includes(name)));
};

/**
 * Computes the L1 fields of receipts from the feed's metadata, for transactions that were not executed.
 * The fields follow from the transaction's bytes and the block's first deposit. Deposits have those that the nodes' deposits have.
 */
class L1ReceiptFields {
  /** The parsed attributes by the first part of a block. */
  readonly #parsed = new WeakMap<BlockPart, BlockL1 | undefined>();

  of(block: PendingBlockState, { raw }: AppliedTransaction, transaction: Transaction): ReceiptExtra {
    const { deposit } = block.extraBlockFields;
    if (transaction.type === DEPOSIT_TYPE && deposit === undefined) {
      return {};
    }
    const l1 = this.#parse(block);
    if (l1 === undefined) {
      return {};
    }
    const extra = opReceiptExtra(l1.rules, l1.attributes, parseData(raw));
    return transaction.type === DEPOSIT_TYPE ? ofDeposit(extra, deposit?.receipt ?? []) : extra;
  }

  #parse({ parts: [first] }: PendingBlockState): BlockL1 | undefined {
    if (first === undefined) {
      return undefined;
    }
    if (!this.#parsed.has(first)) {
      this.#parsed.set(first, parseFirst(first));
    }
    return this.#parsed.get(first);
  }
}
