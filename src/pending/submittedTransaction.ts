import { GAS_PER_BLOB } from "../ethereum/blockFees.ts";
import { type Address, formatData, type Hash, isData, parseData } from "../ethereum/hex.ts";
import { keccak256 } from "../ethereum/keccak.ts";
import { parseTransaction } from "../ethereum/parseTransaction.ts";
import { DEPOSIT_TYPE, InvalidTransaction, type SignedTransaction } from "../ethereum/transaction.ts";
import { recoverSender } from "../evm/senders/recoverAddress.ts";

/** What a signed transaction needs of its sender. */
export interface SentTransaction {
  readonly sender: Address;
  readonly nonce: bigint;
  /** The balance that it needs, in wei: its value, and all of its gas at the highest fee. */
  readonly cost: bigint;
}

/** A raw transaction that a node accepted. */
export interface SubmittedTransaction {
  readonly hash: Hash;
  /** Undefined for a deposit, a signature without a sender, and a transaction type that is not implemented. */
  readonly sent: SentTransaction | undefined;
}

const costOf = (transaction: SignedTransaction): bigint => {
  const { gas, value, type } = transaction;
  const fee = type === 0 || type === 1 ? transaction.gasPrice : transaction.maxFeePerGas;
  const blobs =
    type === 3 ? transaction.maxFeePerBlobGas * GAS_PER_BLOB * BigInt(transaction.blobVersionedHashes.length) : 0n;
  return value + gas * fee + blobs;
};

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
    const { hash, nonce } = transaction;
    const sender = recoverSender(transaction);
    if (sender === undefined) {
      return { hash, sent: undefined };
    }
    return { hash, sent: { sender, nonce, cost: costOf(transaction) } };
  } catch (error) {
    if (!(error instanceof InvalidTransaction)) {
      throw error;
    }
    // A node may accept a type that is not implemented here.
    return { hash: formatData(keccak256(bytes)), sent: undefined };
  }
};
