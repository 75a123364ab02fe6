import { type Address, formatData, type Hash, isData, parseData } from "../ethereum/hex.ts";
import { keccak256 } from "../ethereum/keccak.ts";
import { parseTransaction } from "../ethereum/parseTransaction.ts";
import { DEPOSIT_TYPE, InvalidTransaction } from "../ethereum/transaction.ts";
import { recoverSender } from "../evm/recoverAddress.ts";

/** A raw transaction that a node accepted. */
export interface SubmittedTransaction {
  readonly hash: Hash;
  /** Undefined for a deposit, a signature without a sender, and a transaction type that is not implemented. */
  readonly sent: { readonly sender: Address; readonly nonce: bigint } | undefined;
}

/** Parses a raw transaction. Returns undefined if it is not hex data. */
export const parseSubmitted = (raw: string): SubmittedTransaction | undefined => {
  if (!isData(raw)) {
    return undefined;
  }
  const bytes = parseData(raw);
  try {
    const transaction = parseTransaction(bytes);
    if (transaction.type === DEPOSIT_TYPE) {
      return { hash: transaction.hash, sent: undefined };
    }
    const sender = recoverSender(transaction);
    return { hash: transaction.hash, sent: sender && { sender, nonce: transaction.nonce } };
  } catch (error) {
    if (!(error instanceof InvalidTransaction)) {
      throw error;
    }
    // A node may accept a type that is not implemented here.
    return { hash: formatData(keccak256(bytes)), sent: undefined };
  }
};
