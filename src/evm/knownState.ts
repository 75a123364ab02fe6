import type { AccountState, StateKeys, StateReader, StateValues } from "../core/stateReader.ts";
import { type Address, type Hash, ZERO_ADDRESS, ZERO_HASH } from "../ethereum/hex.ts";
import { type Guesses, largeGuesses } from "./guesses.ts";
import type { MissingState } from "./missingState.ts";
import { NotExecutableError } from "./notExecutableError.ts";
import { EMPTY_CODE_HASH } from "./stateOverlay.ts";

const NOTHING = new Uint8Array(0);

/** Values of one state that came so far. */
export interface KnownState {
  readonly size: number;
  add(values: StateValues): void;
  /** What is not known is guessed, and noted as missing: a run on guesses only tells what to fetch next. */
  reader(missing: MissingState, guesses?: Guesses): StateReader;
  /** Those of the keys whose values are not known. */
  lacking(keys: StateKeys): StateKeys;
}

/** An address whose code is native on that chain. */
export class NativeContractError extends NotExecutableError {}

export interface KnownStateOptions {
  /** Codes outlive states: they are kept by their hash. */
  readonly codes: { get(hash: Hash): Uint8Array | undefined; set(hash: Hash, code: Uint8Array): unknown };
  isNative(address: Address): boolean;
}

export const createKnownState = (options: KnownStateOptions): KnownState => {
  const { codes, isNative } = options;
  const accounts = new Map<Address, AccountState | undefined>();
  const storage = new Map<Address, Map<Hash, Uint8Array>>();
  const blockHashes = new Map<bigint, Hash>();
  let size = 0;

  /** Codes may be dropped to make room. */
  const lacksCode = (address: Address): boolean => {
    const hash = accounts.get(address)?.codeHash;
    return hash !== undefined && hash !== EMPTY_CODE_HASH && codes.get(hash) === undefined;
  };

  const add = (values: StateValues): void => {
    for (const [hash, code] of values.codes) codes.set(hash, code);
    for (const [address, account] of values.accounts) accounts.set(address, account);
    for (const [address, slot, value] of values.slots) {
      const slots = storage.get(address) ?? new Map<Hash, Uint8Array>();
      slots.set(slot, value);
      storage.set(address, slots);
    }
    for (const [number, hash] of values.blockHashes) blockHashes.set(number, hash);
    size += values.accounts.length + values.slots.length + values.blockHashes.length;
  };

  const reader = (missing: MissingState, guesses: Guesses = largeGuesses): StateReader => ({
    account: (address) => {
      if (isNative(address)) throw new NativeContractError(`the code at ${address} is native`);
      missing.check();
      const account = accounts.get(address);
      if (account !== undefined || accounts.has(address)) return account;
      // A guessed slot leads to the zero address, which is not worth fetching for that.
      if (address !== ZERO_ADDRESS || missing.count === 0) missing.account(address);
      return guesses.account;
    },
    code: (hash, address) => {
      const code = codes.get(hash);
      if (code !== undefined) return code;
      if (hash === guesses.account.codeHash) return guesses.code;
      // It was dropped to make room; asking for the account brings it again.
      missing.account(address);
      return NOTHING;
    },
    storage: (address, slot) => {
      missing.check();
      const value = storage.get(address)?.get(slot);
      if (value !== undefined) {
        guesses.saw(address, value);
        return value;
      }
      missing.slot(address, slot);
      return guesses.slot(address);
    },
    blockHash: (number) => {
      const hash = blockHashes.get(number);
      if (hash !== undefined) return hash;
      missing.blockHash(number);
      return ZERO_HASH;
    },
  });

  return {
    get size() {
      return size;
    },
    add,
    reader,
    lacking: ({ accounts: addresses, slots, blockHashes: numbers }) => ({
      accounts: addresses.filter((address) => !accounts.has(address) || lacksCode(address)),
      slots: slots.filter(([address, slot]) => !storage.get(address)?.has(slot)),
      blockHashes: numbers.filter((number) => !blockHashes.has(number)),
    }),
  };
};
