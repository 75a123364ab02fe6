import type { AccountState, StateKeys, StateReader } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";
import { DeadlineError } from "../deadlineError.ts";
import type { MissingState } from "./missingState.ts";

/**
 * The state that an execution reads, of which not all values are known. With `MissingState` an execution goes on with
 * guesses, and its result is worthless if it lacked a value. With `FirstMissing` it stops at the first missing value.
 */
export class IncompleteState implements StateReader {
  readonly #Missing: typeof MissingState;
  readonly #readerOf: (missing: MissingState) => StateReader;
  #reader: StateReader;

  /** `readerOf` returns a reader of what is known now. The reader notes in `missing` what is not. */
  constructor(Missing: typeof MissingState, readerOf: (missing: MissingState) => StateReader) {
    this.#Missing = Missing;
    this.#readerOf = readerOf;
    this.#reader = readerOf(new Missing());
  }

  /**
   * Executes until no value is missing. `fetch` gets the keys of the missing values, and makes them known. Throws the error of an
   * execution that lacked no value, DeadlineError, and the error of `fetch`.
   */
  async complete<R>(execute: () => R | Promise<R>, fetch: (missing: StateKeys) => Promise<void>): Promise<R> {
    for (;;) {
      const missing = this.renew();
      try {
        const result = await execute();
        if (missing.count === 0) {
          return result;
        }
      } catch (error) {
        if (missing.count === 0 || error instanceof DeadlineError) {
          throw error;
        }
      }
      await fetch(missing.keys());
    }
  }

  /** Reads what is known now. Returns the notes of values that are not. */
  renew(): MissingState {
    const missing = new this.#Missing();
    this.#reader = this.#readerOf(missing);
    return missing;
  }

  account(address: Address): AccountState | undefined {
    return this.#reader.account(address);
  }

  code(hash: Hash, address: Address): Uint8Array {
    return this.#reader.code(hash, address);
  }

  storage(address: Address, slot: Hash): Uint8Array {
    return this.#reader.storage(address, slot);
  }

  blockHash(number: bigint): Hash {
    return this.#reader.blockHash(number);
  }
}
