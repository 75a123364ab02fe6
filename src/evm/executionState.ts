import type { StateChanges } from "../core/stateReader.ts";
import type { Address, Hash } from "../ethereum/hex.ts";

/** The fields of an existing account. */
export interface AccountValues {
  readonly nonce: bigint;
  readonly balance: bigint;
  readonly codeHash: Uint8Array;
}

/**
 * The state of one execution: what a reader returns, below everything that this execution wrote. Only engines of the kind that
 * created it can execute on it. Reads throw the reader's errors.
 */
export interface ExecutionState {
  /** Returns `undefined` if the account does not exist. The result is valid until the next write. */
  accountOf(address: Address): AccountValues | undefined;
  nonceOf(address: Address): bigint;
  balanceOf(address: Address): bigint;
  codeOf(address: Address): Uint8Array;
  /** Returns the value of a slot without leading zero bytes. */
  storageOf(address: Address, slot: Hash): Uint8Array;

  // Writes between transactions. They count as the writes of an earlier transaction, and create the account.
  setAccount(address: Address, nonce: bigint, balance: bigint): void;
  /** Wraps at 2^256, like geth. */
  addBalance(address: Address, amount: bigint): void;
  setCode(address: Address, code: Uint8Array): void;
  /** Sets all slots to zero. */
  clear(address: Address): void;
  /** The value has no leading zero bytes. */
  setStorage(address: Address, slot: Hash, value: Uint8Array): void;
  /** Writes a slot without a read of the account. `changes` does not return it. */
  presetStorage(address: Address, slot: Hash, value: Uint8Array): void;
  /** Commits the writes above and, if `removesEmpty` (EIP-161), deletes the empty accounts that they touched. */
  endTransaction(removesEmpty: boolean): void;

  /** Returns all writes since the start. Some of them may have the value from before. */
  changes(): StateChanges;
}
