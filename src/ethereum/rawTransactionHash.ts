import type { Hash } from "./hex.ts";
import { keccak256Hex } from "./keccak.ts";
import { parseTransaction } from "./parseTransaction.ts";
import { InvalidTransaction } from "./transaction.ts";

/** Returns the hash of a raw transaction; undefined if its type is not known. The blobs of a blob transaction are not a part of it. */
export const rawTransactionHash = (raw: Uint8Array): Hash | undefined => {
  try {
    return parseTransaction(raw).hash;
  } catch (error) {
    if (error instanceof InvalidTransaction) {
      return undefined;
    }
    throw error;
  }
};

/** The same. A type that is not known has the hash of its bytes. */
export const presumedTransactionHash = (raw: Uint8Array): Hash => rawTransactionHash(raw) ?? keccak256Hex(raw);
