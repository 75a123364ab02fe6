import type { Address, Data, Hash } from "../ethereum/hex.ts";
import { parseData } from "../ethereum/hex.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";
import { orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import { parseTransaction } from "../ethereum/parseTransaction.ts";
import { DEPOSIT_TYPE, InvalidTransaction } from "../ethereum/transaction.ts";
import type { DecodedTransaction, Execution, UnverifiedReason } from "./execution.ts";

/** Returns the sender of a transaction if it was recovered before. */
export type KnownSender = (hash: Hash) => Address | undefined;

/** Returns a transaction's hash, and its sender if it is a deposit or the sender is known. Invalid bytes have a hash too. */
const identify = (raw: Data, senderOf: KnownSender): DecodedTransaction => {
  const bytes = parseData(raw);
  try {
    const transaction = parseTransaction(bytes);
    const { hash } = transaction;
    return { hash, sender: transaction.type === DEPOSIT_TYPE ? transaction.from : senderOf(hash) };
  } catch (error) {
    if (!(error instanceof InvalidTransaction)) {
      throw error;
    }
    return { hash: keccak256Hex(bytes), sender: undefined };
  }
};

/**
 * Decodes a flashblock without executing it, while its execution is late or has failed.
 * The result has no state, and only the senders that are known. It runs on the main thread.
 */
export const decodeOnly = (
  blockTransactions: readonly Data[],
  transactions: readonly Data[],
  unverified: UnverifiedReason,
  senderOf: KnownSender = () => undefined,
): Execution => ({
  transactions: transactions.map((raw) => identify(raw, senderOf)),
  transactionsRoot: transactionsRootOf(blockTransactions),
  outcome: undefined,
  unverified,
});

const transactionsRootOf = (raws: readonly Data[]): Hash => orderedTrieRoot(raws.map(parseData));
