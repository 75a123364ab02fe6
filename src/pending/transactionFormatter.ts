import type { PendingEnvironment } from "../core/view.ts";
import { formatTransaction } from "../ethereum/formatTransaction.ts";
import { type Address, formatQuantity, type Hash, parseData, ZERO_ADDRESS } from "../ethereum/hex.ts";
import {
  dataFootprint,
  L1_BLOCK,
  type L1Attributes,
  l1AttributesFork,
  l1DataCost,
  parseL1Attributes,
} from "../ethereum/opFees.ts";
import { parseTransaction } from "../ethereum/parseTransaction.ts";
import { formatReceipt } from "../ethereum/receipt.ts";
import { type ChainForks, isOpForkActive, newestRulesAt, type Rules } from "../ethereum/rules.ts";
import { DEPOSIT_TYPE, InvalidTransaction, type Transaction } from "../ethereum/transaction.ts";
import { recoverSender } from "../evm/senders/recoverAddress.ts";
import type { AppliedTransaction, BlockPart, PendingBlockState } from "./applyMessage.ts";

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
  readonly #l1: L1ReceiptFields;

  /** `forks` returns the chain's rules as far as they are known now. */
  constructor(forks: () => ChainForks | undefined) {
    this.#l1 = new L1ReceiptFields(forks);
  }

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
        extra: {
          ...this.#l1.of(block, applied, transaction),
          ...(applied.refund === 0n ? {} : { opGasRefund: formatQuantity(applied.refund) }),
        },
      }),
    );
  }

  #parse(applied: AppliedTransaction): Transaction | undefined {
    if (!this.#parsed.has(applied)) {
      this.#parsed.set(applied, parse(applied));
    }
    return this.#parsed.get(applied);
  }
}

/** Receipt fields that are not part of consensus. */
type ReceiptExtra = Readonly<Record<string, string>>;

/** Returns the receipt fields that op-geth and op-reth add (docs/reference/op-stack.md, Fees and receipts). */
export const opReceiptExtra = (rules: Rules, l1: L1Attributes, raw: Uint8Array): ReceiptExtra => {
  const { fee, gasUsed } = l1DataCost(rules, l1, raw);
  const hasOperatorFee = l1.operatorFeeScalar > 0n || l1.operatorFeeConstant > 0n;
  return {
    l1GasPrice: formatQuantity(l1.baseFee),
    l1GasUsed: formatQuantity(gasUsed),
    l1Fee: formatQuantity(fee),
    l1BaseFeeScalar: formatQuantity(l1.baseFeeScalar),
    l1BlobBaseFee: formatQuantity(l1.blobBaseFee),
    l1BlobBaseFeeScalar: formatQuantity(l1.blobBaseFeeScalar),
    ...(isOpForkActive(rules, "isthmus") && hasOperatorFee
      ? {
          operatorFeeScalar: formatQuantity(l1.operatorFeeScalar),
          operatorFeeConstant: formatQuantity(l1.operatorFeeConstant),
        }
      : {}),
    ...(isOpForkActive(rules, "jovian")
      ? {
          daFootprintGasScalar: formatQuantity(l1.daFootprintGasScalar),
          blobGasUsed: formatQuantity(dataFootprint(l1, raw)),
        }
      : {}),
  };
};

/** A deposit pays no L1 fee. op-geth's receipts of deposits have none of these fields, those of op-reth have all. */
const ofDeposit = (extra: ReceiptExtra, names: readonly string[]): ReceiptExtra => {
  const fields = Object.entries({ ...extra, l1Fee: "0x0" });
  return Object.fromEntries(fields.filter(([name]) => names.includes(name)));
};

interface BlockL1 {
  readonly rules: Rules;
  readonly attributes: L1Attributes;
}

/**
 * Computes the L1 fields of receipts. They follow from the transaction's bytes and the block's first deposit, the same before and
 * after the execution. Deposits have those that the nodes' deposits have.
 */
class L1ReceiptFields {
  readonly #forks: () => ChainForks | undefined;
  /** The parsed attributes by the first part of a block. */
  readonly #parsed = new WeakMap<BlockPart, BlockL1 | undefined>();

  constructor(forks: () => ChainForks | undefined) {
    this.#forks = forks;
  }

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

  #parse({ environment, parts: [first] }: PendingBlockState): BlockL1 | undefined {
    if (first === undefined) {
      return undefined;
    }
    if (!this.#parsed.has(first)) {
      this.#parsed.set(first, this.#parseFirst(first, environment));
    }
    return this.#parsed.get(first);
  }

  /** Parses the L1 attributes of a part's first transaction: the deposit at the start of every block of an OP-stack chain. */
  #parseFirst({ transactions: [first] }: BlockPart, { number, timestamp }: PendingEnvironment): BlockL1 | undefined {
    const transaction = first && parse(first);
    if (transaction?.type !== DEPOSIT_TYPE || transaction.to !== L1_BLOCK) {
      return undefined;
    }
    const forks = this.#forks();
    // Calldata of forks before Isthmus does not say which.
    const op = l1AttributesFork(transaction.input) ?? (forks && newestRulesAt(forks, number, timestamp).op);
    return op && { rules: { chainId: 0n, fork: "prague", op }, attributes: parseL1Attributes(transaction.input) };
  }
}
