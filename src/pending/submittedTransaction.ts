import { type Address, formatData, type Hash, isData, parseData } from "../ethereum/hex.ts";
import { keccak256 } from "../ethereum/keccak.ts";
import { parseTransaction } from "../ethereum/parseTransaction.ts";
import { DEPOSIT_TYPE, InvalidTransaction } from "../ethereum/transaction.ts";
import { recoverSender } from "../evm/senders/recoverAddress.ts";
import type { SenderCache } from "../evm/senders/senderCache.ts";

/** A raw transaction that a node accepted. */
export interface SubmittedTransaction {
  readonly hash: Hash;
  /** Undefined for a deposit, a signature without a sender, and a transaction type that is not implemented. */
  readonly sent: { readonly sender: Address; readonly nonce: bigint } | undefined;
}

/** Parses a raw transaction and caches its sender. Returns undefined if it is not hex data. */
export const parseSubmitted = (raw: string, senders: SenderCache): SubmittedTransaction | undefined => {
  if (!isData(raw)) {
    return undefined;
  }
  const bytes = parseData(raw);
  try {
    const transaction = parseTransaction(bytes);
    if (transaction.type === DEPOSIT_TYPE) {
      return { hash: transaction.hash, sent: undefined };
    }
    const { hash, nonce } = transaction;
    const sender = senders.get(hash) ?? recoverSender(transaction);
    if (sender === undefined) {
      return { hash, sent: undefined };
    }
    senders.add(hash, sender);
    return { hash, sent: { sender, nonce } };
  } catch (error) {
    if (!(error instanceof InvalidTransaction)) {
      throw error;
    }
    // A node may accept a type that is not implemented here.
    return { hash: formatData(keccak256(bytes)), sent: undefined };
  }
};
