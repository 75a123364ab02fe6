import { parseData } from "../ethereum/hex.ts";
import { L1_BLOCK, type L1Attributes, l1AttributesFork, parseL1Attributes } from "../ethereum/opFees.ts";
import { parseTransaction } from "../ethereum/parseTransaction.ts";
import type { Rules } from "../ethereum/rules.ts";
import { DEPOSIT_TYPE, InvalidTransaction, type Transaction } from "../ethereum/transaction.ts";
import type { AppliedTransaction, FlashblockPart, PendingBlockState } from "./applyFlashblock.ts";
import type { ReceiptExtra } from "./execution.ts";
import { opReceiptExtra } from "./opReceipt.ts";

interface BlockL1 {
  readonly rules: Rules;
  readonly attributes: L1Attributes;
}

/** Parses the L1 attributes of a part's first transaction: the deposit at the start of every block of an OP-stack chain. */
const parseFirst = ({ transactions: [first] }: FlashblockPart): BlockL1 | undefined => {
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
export class L1ReceiptFields {
  /** The parsed attributes by the first part of a block. */
  readonly #parsed = new WeakMap<FlashblockPart, BlockL1 | undefined>();

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
