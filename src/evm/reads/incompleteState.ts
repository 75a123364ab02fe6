import type { AccountState, StateKeys, StateReader } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";
import { DeadlineError } from "../deadlineError.ts";
import type { MissingState } from "./missingState.ts";

/** The result of an execution, or the keys of the values that it lacked. */
type Attempt<R> = { readonly result: R } | { readonly missing: StateKeys };

/**
 * The state that an execution reads, of which not all values are known. With `createMissingState` an execution goes on with
 * guesses, and its result is worthless if it lacked a value. With `createStrictState` it stops at the first missing value.
 */
export class IncompleteState implements StateReader {
  readonly #createMissing: () => MissingState;
  readonly #readerOf: (missing: MissingState) => StateReader;
  #reader: StateReader;

  /** `readerOf` returns a reader of what is known now. The reader notes in `missing` what is not. */
  constructor(createMissing: () => MissingState, readerOf: (missing: MissingState) => StateReader) {
    this.#createMissing = createMissing;
    this.#readerOf = readerOf;
    this.#reader = readerOf(createMissing());
  }

  /** Executes until no value is missing. `fetch` gets the keys of the missing values, and makes them known. */
  async complete<R>(execute: () => R | Promise<R>, fetch: (missing: StateKeys) => Promise<void>): Promise<R> {
    for (;;) {
      const attempt = await this.attempt(execute);
      if ("result" in attempt) {
        return attempt.result;
      }
      await fetch(attempt.missing);
    }
  }

  /** Executes once, on what is known now. Throws the error of an execution that lacked no value, and DeadlineError. */
  async attempt<R>(execute: () => R | Promise<R>): Promise<Attempt<R>> {
    const missing = this.renew();
    try {
      const result = await execute();
      if (missing.count === 0) {
        return { result };
      }
    } catch (error) {
      if (missing.count === 0 || error instanceof DeadlineError) {
        throw error;
      }
    }
    return { missing: missing.keys() };
  }

  /** Reads what is known now. Returns the notes of values that are not. */
  renew(): MissingState {
    const missing = this.#createMissing();
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
