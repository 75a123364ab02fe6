import type { Address, Hash } from "../ethereum/hex.ts";

/** An account at one moment. One that does not exist is undefined. */
export interface AccountState {
  readonly nonce: bigint;
  readonly balance: bigint;
  readonly codeHash: Hash;
  /** Known to have slots that are not zero; only accounts that have neither code nor nonce need it said (EIP-7610). */
  readonly hasStorage?: boolean;
}

/** State at one moment, read without waiting: what is not there at once is the reader's business (evm/knownState). */
export interface StateReader {
  account(address: Address): AccountState | undefined;
  code(codeHash: Hash, address: Address): Uint8Array;
  /** The slot's value, without leading zero bytes; empty for zero. */
  storage(address: Address, slot: Hash): Uint8Array;
  /** Hash of an ancestor of the block that the state is of. */
  blockHash(number: bigint): Hash;
}

/** What a run lacked. */
export interface StateKeys {
  readonly accounts: readonly Address[];
  readonly slots: readonly (readonly [Address, Hash])[];
  readonly blockHashes: readonly bigint[];
}

/** What was found: plain data, sent between threads. */
export interface StateValues {
  readonly accounts: readonly (readonly [Address, AccountState | undefined])[];
  readonly codes: readonly (readonly [Hash, Uint8Array])[];
  readonly slots: readonly (readonly [Address, Hash, Uint8Array])[];
  readonly blockHashes: readonly (readonly [bigint, Hash])[];
}

/** What one account was made to be; `undefined` as `account` means that it is gone. */
export interface AccountChange {
  readonly account: AccountState | undefined;
  /** Set where the code was written. */
  readonly code?: Uint8Array;
  /** All slots but those in `slots` are zero: the account was created or destroyed. */
  readonly isCleared: boolean;
  readonly slots: readonly (readonly [Hash, Uint8Array])[];
}

/** What transactions wrote: plain data, sent between threads and stacked by the view. */
export type StateChanges = ReadonlyMap<Address, AccountChange>;

/** State at one moment for whoever can wait. Equal ids mean equal values, so that values may be kept under the id. */
export interface StateSource {
  readonly id: string;
  read(keys: StateKeys, signal: AbortSignal): Promise<StateValues>;
}
