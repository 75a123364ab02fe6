import type { Address } from "../ethereum/hex.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";
import { parseTransaction } from "../ethereum/parseTransaction.ts";
import { InvalidTransaction } from "../ethereum/transaction.ts";
import { recoverSender } from "../evm/senders/recoverAddress.ts";
import { isDepositTransaction, type Prepared } from "./executeTransactions.ts";
import type { DecodedTransaction, UnverifiedReason } from "./execution.ts";

/** A decoded transaction of a flashblock, before its execution. */
export interface Decoded {
  readonly raw: Uint8Array;
  readonly identity: DecodedTransaction;
  readonly prepared: Prepared | undefined;
  readonly unverified: UnverifiedReason | undefined;
}

/** Decodes a transaction and recovers its sender unless it is known. Invalid bytes have only a hash and are `undecodable`. */
export const decodeTransaction = (raw: Uint8Array, chainId: bigint, known?: Address): Decoded => {
  try {
    const transaction = parseTransaction(raw);
    const { hash } = transaction;
    if (isDepositTransaction(transaction)) {
      return { raw, identity: { hash, sender: transaction.from }, prepared: { transaction }, unverified: undefined };
    }
    const sender = known ?? recoverSender(transaction);
    const isForeign = transaction.chainId !== undefined && transaction.chainId !== chainId;
    if (sender === undefined) {
      return { raw, identity: { hash, sender }, prepared: undefined, unverified: "undecodable" };
    }
    const unverified = isForeign ? "foreignChain" : undefined;
    return { raw, identity: { hash, sender }, prepared: { transaction, sender }, unverified };
  } catch (error) {
    if (!(error instanceof InvalidTransaction)) {
      throw error;
    }
    return {
      raw,
      identity: { hash: keccak256Hex(raw), sender: undefined },
      prepared: undefined,
      unverified: "undecodable",
    };
  }
};
