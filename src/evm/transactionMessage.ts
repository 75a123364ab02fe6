import type { Address, Hash } from "../ethereum/hex.ts";
import type { AccessListEntry, Authorization, SignedTransaction } from "../ethereum/transaction.ts";

/** The content of a transaction, independent of its encoding and signature. */
export interface TransactionMessage {
  readonly type: number;
  readonly from: Address;
  /** null creates a contract. */
  readonly to: Address | null;
  readonly nonce: bigint;
  readonly gas: bigint;
  readonly value: bigint;
  readonly input: Uint8Array;
  /** If the transaction has a gas price, both fees are that price. */
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
  readonly accessList: readonly AccessListEntry[];
  readonly maxFeePerBlobGas: bigint;
  readonly blobVersionedHashes: readonly Hash[];
  readonly authorizationList: readonly Authorization[];
  /** Whether the rules of blob transactions apply. Default: according to the type. */
  readonly isBlob?: boolean;
  /** Whether the rules of EIP-7702 transactions apply. Default: according to the type. */
  readonly isSetCode?: boolean;
}

export const BLOB_TYPE = 3;
export const SET_CODE_TYPE = 4;

/** Converts a signed transaction. `from` is the recovered sender. */
export const messageOf = (transaction: SignedTransaction, from: Address): TransactionMessage => {
  const { type, to, nonce, gas, value, input } = transaction;
  const isPriced = type === 0 || type === 1;
  return {
    type,
    from,
    to,
    nonce,
    gas,
    value,
    input,
    maxFeePerGas: isPriced ? transaction.gasPrice : transaction.maxFeePerGas,
    maxPriorityFeePerGas: isPriced ? transaction.gasPrice : transaction.maxPriorityFeePerGas,
    accessList: type === 0 ? [] : transaction.accessList,
    maxFeePerBlobGas: type === BLOB_TYPE ? transaction.maxFeePerBlobGas : 0n,
    blobVersionedHashes: type === BLOB_TYPE ? transaction.blobVersionedHashes : [],
    authorizationList: type === SET_CODE_TYPE ? transaction.authorizationList : [],
  };
};
