import { keccak256Hex } from "../ethereum/keccak.ts";
import { parseTransaction } from "../ethereum/parseTransaction.ts";
import { DEPOSIT_TYPE, InvalidTransaction, UnknownTransactionType } from "../ethereum/transaction.ts";
import { recoverSender } from "../evm/senders/recoverAddress.ts";
import type { DecodedTransaction, UnverifiedReason } from "./executableMessage.ts";
import type { Prepared } from "./executeTransaction.ts";

/** A decoded transaction of a flashblock, before its execution. */
export interface Decoded {
  readonly raw: Uint8Array;
  readonly identity: DecodedTransaction;
  readonly prepared: Prepared | undefined;
  readonly unverified: UnverifiedReason | undefined;
  /** Details of `unverified`, for the log. */
  readonly cause?: string;
}

/**
 * Decodes a transaction for a chain. Invalid bytes have only a hash, and are `undecodable`. A transaction of a type that is not known
 * here may be right: it is `unexecutable`.
 */
export const decodeTransaction = (raw: Uint8Array, chainId: bigint): Decoded => {
  try {
    const transaction = parseTransaction(raw);
    const { hash } = transaction;
    if (transaction.type === DEPOSIT_TYPE) {
      return { raw, identity: { hash, sender: transaction.from }, prepared: { transaction }, unverified: undefined };
    }
    const sender = recoverSender(transaction);
    if (sender === undefined) {
      return { raw, identity: { hash, sender }, prepared: undefined, unverified: "undecodable" };
    }
    const isForeign = transaction.chainId !== undefined && transaction.chainId !== chainId;
    const unverified = isForeign ? "foreignChain" : undefined;
    return { raw, identity: { hash, sender }, prepared: { transaction, sender }, unverified };
  } catch (error) {
    if (!(error instanceof InvalidTransaction)) {
      throw error;
    }
    const identity = { hash: keccak256Hex(raw), sender: undefined };
    const unverified = error instanceof UnknownTransactionType ? "unexecutable" : "undecodable";
    return { raw, identity, prepared: undefined, unverified, cause: error.message };
  }
};
