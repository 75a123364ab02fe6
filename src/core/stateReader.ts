import type { Address, Hash } from "../ethereum/hex.ts";

/** An account at one moment. An account that does not exist is `undefined`. */
export interface AccountState {
  readonly nonce: bigint;
  readonly balance: bigint;
  readonly codeHash: Hash;
  /** The account has slots that are not zero. Only accounts without code and nonce need this flag (EIP-7610). */
  readonly hasStorage?: boolean;
}

/** State at one moment, read synchronously. The implementation decides how to treat missing values (evm/reads/cachedState). */
export interface StateReader {
  account(address: Address): AccountState | undefined;
  code(codeHash: Hash, address: Address): Uint8Array;
  /** Returns the value of a slot without leading zero bytes. Zero is empty. */
  storage(address: Address, slot: Hash): Uint8Array;
  /** Returns the hash of an ancestor of the state's block. */
  blockHash(number: bigint): Hash;
}

/** Keys of state values, for example those that an execution misses. */
export interface StateKeys {
  readonly accounts: readonly Address[];
  readonly slots: readonly (readonly [Address, Hash])[];
  readonly blockHashes: readonly bigint[];
}

export const NO_KEYS: StateKeys = { accounts: [], slots: [], blockHashes: [] };

/** Fetched state values. They are plain data, so that threads can send them to each other. */
export interface StateValues {
  readonly accounts: readonly (readonly [Address, AccountState | undefined])[];
  readonly codes: readonly (readonly [Hash, Uint8Array])[];
  readonly slots: readonly (readonly [Address, Hash, Uint8Array])[];
  readonly blockHashes: readonly (readonly [bigint, Hash])[];
}

export const NO_VALUES: StateValues = { accounts: [], codes: [], slots: [], blockHashes: [] };

/** The new values of one account. */
export interface AccountChange {
  /** `undefined`: the account was destroyed. */
  readonly account: AccountState | undefined;
  /** Present if the code was written. */
  readonly code?: Uint8Array;
  /** All slots outside `slots` are zero, because the account was created or destroyed. */
  readonly isCleared: boolean;
  /** Values without leading zero bytes. Zero is empty. */
  readonly slots: ReadonlyMap<Hash, Uint8Array>;
}

/** The write set of transactions. It is plain data, so that threads can send it. The view stacks write sets. */
export type StateChanges = ReadonlyMap<Address, AccountChange>;

/** A call object, as a client would write it. */
export type PlainCall = Readonly<Record<string, unknown>>;

/** State at one moment, read asynchronously. Sources with equal ids return equal values, so values may be cached under the id. */
export interface StateSource {
  readonly id: string;
  /** Values that a run probably reads. A private run has them from its start. */
  readonly expected?: StateValues | undefined;
  /** `calls` will run on this state. Nodes that can trace them return what they read, too. */
  read(keys: StateKeys, signal: AbortSignal, calls?: readonly PlainCall[]): Promise<StateValues>;
}
