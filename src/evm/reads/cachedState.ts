import type { AccountState, StateKeys, StateReader, StateValues } from "../../core/stateReader.ts";
import { type Address, type Hash, ZERO_ADDRESS, ZERO_HASH } from "../../ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../ethereum/keccak.ts";
import { NotExecutableError } from "../executionErrors.ts";
import { type GuessedValues, largeGuesses } from "./guesses.ts";
import type { MissingState } from "./missingState.ts";

const NOTHING = new Uint8Array(0);

/** The run reads an address whose code is native on that chain. */
class NativeContractError extends NotExecutableError {}

export interface CachedStateOptions {
  /** A cache of code by hash, shared by all states. */
  readonly codes: { get(hash: Hash): Uint8Array | undefined; set(hash: Hash, code: Uint8Array): unknown };
  isNative(address: Address): boolean;
}

/** The cached values of one state. */
export class CachedState {
  readonly #options: CachedStateOptions;
  readonly #accounts = new Map<Address, AccountState | undefined>();
  readonly #storage = new Map<Address, Map<Hash, Uint8Array>>();
  readonly #blockHashes = new Map<bigint, Hash>();
  /** Number of slots. */
  #slots = 0;

  constructor(options: CachedStateOptions) {
    this.#options = options;
  }

  /** Number of cached values. */
  get size(): number {
    return this.#accounts.size + this.#slots + this.#blockHashes.size;
  }

  add(values: StateValues): void {
    for (const [hash, code] of values.codes) {
      this.#options.codes.set(hash, code);
    }
    for (const [address, account] of values.accounts) {
      this.#accounts.set(address, account);
    }
    for (const [address, slot, value] of values.slots) {
      const slots = this.#storage.get(address) ?? new Map<Hash, Uint8Array>();
      this.#slots += slots.has(slot) ? 0 : 1;
      slots.set(slot, value);
      this.#storage.set(address, slots);
    }
    for (const [number, hash] of values.blockHashes) {
      this.#blockHashes.set(number, hash);
    }
  }

  code(hash: Hash): Uint8Array | undefined {
    return this.#options.codes.get(hash);
  }

  /** Returns the keys whose values are not cached. */
  uncached({ accounts, slots, blockHashes }: StateKeys): StateKeys {
    return {
      accounts: accounts.filter((address) => !this.#accounts.has(address) || this.#lacksCode(address)),
      slots: slots.filter(([address, slot]) => !this.#storage.get(address)?.has(slot)),
      blockHashes: blockHashes.filter((number) => !this.#blockHashes.has(number)),
    };
  }

  /** Records values that are not cached in `missing`, and returns guesses for them. A run on guesses only shows what to fetch next. */
  reader(missing: MissingState, guesses: GuessedValues = largeGuesses): StateReader {
    const { codes, isNative } = this.#options;
    const [accounts, storage, blockHashes] = [this.#accounts, this.#storage, this.#blockHashes];
    return {
      account: (address) => {
        if (isNative(address)) {
          throw new NativeContractError(`the code at ${address} is native`);
        }
        missing.check();
        const account = accounts.get(address);
        if (account !== undefined || accounts.has(address)) {
          return account;
        }
        // A guessed slot leads to the zero address. The run need not fetch that account for a guess.
        if (address !== ZERO_ADDRESS || missing.count === 0) {
          missing.account(address);
        }
        return guesses.account;
      },
      code: (hash, address) => {
        const code = codes.get(hash);
        if (code !== undefined) {
          return code;
        }
        if (hash === guesses.account.codeHash) {
          return guesses.code;
        }
        // The code was evicted. A fetch of the account fetches its code too.
        missing.account(address);
        return NOTHING;
      },
      storage: (address, slot) => {
        missing.check();
        const value = storage.get(address)?.get(slot);
        if (value !== undefined) {
          guesses.saw?.(address, value);
          return value;
        }
        missing.slot(address, slot);
        return guesses.slot(address);
      },
      blockHash: (number) => {
        const hash = blockHashes.get(number);
        if (hash !== undefined) {
          return hash;
        }
        missing.blockHash(number);
        return ZERO_HASH;
      },
    };
  }

  /** The cache of code evicts. */
  #lacksCode(address: Address): boolean {
    const hash = this.#accounts.get(address)?.codeHash;
    return hash !== undefined && hash !== EMPTY_CODE_HASH && this.#options.codes.get(hash) === undefined;
  }
}
