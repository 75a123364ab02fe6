import type { Data, Hash } from "../ethereum/hex.ts";
import { parseData } from "../ethereum/hex.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";
import { orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import { parseTransaction } from "../ethereum/parseTransaction.ts";
import { DEPOSIT_TYPE, InvalidTransaction } from "../ethereum/transaction.ts";
import type { DecodedTransaction, Execution, UnverifiedReason } from "./execution.ts";

/** Returns a transaction's hash, and the sender of a deposit. Invalid bytes have a hash too. */
const identify = (raw: Data): DecodedTransaction => {
  const bytes = parseData(raw);
  try {
    const transaction = parseTransaction(bytes);
    return { hash: transaction.hash, sender: transaction.type === DEPOSIT_TYPE ? transaction.from : undefined };
  } catch (error) {
    if (!(error instanceof InvalidTransaction)) {
      throw error;
    }
    return { hash: keccak256Hex(bytes), sender: undefined };
  }
};

/**
 * Decodes a flashblock without executing it, while its execution is late or has failed.
 * The result has no state and no senders. It runs on the main thread.
 */
export const decodeOnly = (
  blockTransactions: readonly Data[],
  transactions: readonly Data[],
  unverified: UnverifiedReason,
): Execution => ({
  transactions: transactions.map(identify),
  transactionsRoot: transactionsRootOf(blockTransactions),
  outcome: undefined,
  unverified,
});

const transactionsRootOf = (raws: readonly Data[]): Hash => orderedTrieRoot(raws.map(parseData));
