import { parseData } from "../ethereum/hex.ts";
import { L1_BLOCK, type L1Attributes, l1AttributesFork, parseL1Attributes } from "../ethereum/opFees.ts";
import { parseTransaction } from "../ethereum/parseTransaction.ts";
import type { Rules } from "../ethereum/rules.ts";
import { DEPOSIT_TYPE, InvalidTransaction, type Transaction } from "../ethereum/transaction.ts";
import type { FlashblockPart, PendingBlockState } from "./applyFlashblock.ts";
import type { ReceiptExtra } from "./execution.ts";
import { opReceiptExtra } from "./opReceipt.ts";

interface BlockL1 {
  readonly rules: Rules;
  readonly attributes: L1Attributes;
}

/** The L1 attributes of the deposit that begins every block of an OP-stack chain; undefined for any other transaction. */
const parseFirst = ({ transactions: [first] }: FlashblockPart): BlockL1 | undefined => {
  if (first === undefined) return undefined;
  try {
    const transaction = parseTransaction(parseData(first.raw));
    if (transaction.type !== DEPOSIT_TYPE || transaction.to !== L1_BLOCK) return undefined;
    const op = l1AttributesFork(transaction.input);
    if (op === undefined) return undefined;
    return { rules: { chainId: 0n, fork: "prague", op }, attributes: parseL1Attributes(transaction.input) };
  } catch (error) {
    if (error instanceof InvalidTransaction) return undefined;
    throw error;
  }
};

const parsed = new WeakMap<FlashblockPart, BlockL1 | undefined>();

const blockL1 = ({ parts: [first] }: PendingBlockState): BlockL1 | undefined => {
  if (first === undefined) return undefined;
  if (!parsed.has(first)) parsed.set(first, parseFirst(first));
  return parsed.get(first);
};

/**
 * The L1 fields of a receipt that the feed's metadata gives, of a transaction that was not executed here. They follow from the
 * transaction's bytes and the block's first deposit alone. Deposits have none.
 */
export const l1Extra = (block: PendingBlockState, transaction: Transaction): ReceiptExtra => {
  if (transaction.type === DEPOSIT_TYPE) return {};
  const l1 = blockL1(block);
  return l1 === undefined ? {} : opReceiptExtra(l1.rules, l1.attributes, transaction.raw);
};
