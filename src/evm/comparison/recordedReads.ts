import type { AccountState, StateReader, StateValues } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";

/** Records all values that a run reads. */
export class RecordedReads {
  readonly #accounts = new Map<Address, AccountState | undefined>();
  readonly #codes = new Map<Hash, Uint8Array>();
  readonly #slots = new Map<string, readonly [Address, Hash, Uint8Array]>();
  readonly #blockHashes = new Map<bigint, Hash>();

  reader(reader: StateReader): StateReader {
    return {
      account: (address) => {
        const account = reader.account(address);
        this.#accounts.set(address, account);
        return account;
      },
      code: (hash, address) => {
        const code = reader.code(hash, address);
        this.#codes.set(hash, code);
        return code;
      },
      storage: (address, slot) => {
        const value = reader.storage(address, slot);
        this.#slots.set(address + slot, [address, slot, value]);
        return value;
      },
      blockHash: (number) => {
        const hash = reader.blockHash(number);
        this.#blockHashes.set(number, hash);
        return hash;
      },
    };
  }

  values(): StateValues {
    return {
      accounts: [...this.#accounts],
      codes: [...this.#codes],
      slots: [...this.#slots.values()],
      blockHashes: [...this.#blockHashes],
    };
  }
}

/** Returns the values that one of two runs on the same state read. */
export const unionOf = (one: StateValues, other: StateValues): StateValues => ({
  accounts: [...new Map([...one.accounts, ...other.accounts])],
  codes: [...new Map([...one.codes, ...other.codes])],
  slots: [...new Map([...one.slots, ...other.slots].map((value) => [value[0] + value[1], value])).values()],
  blockHashes: [...new Map([...one.blockHashes, ...other.blockHashes])],
});
