import type { AccountState, StateReader } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";
import { MissingState } from "./missingState.ts";

/** The state that an execution reads, of which not all values are known. A result is worthless if the execution lacked one. */
export class IncompleteState implements StateReader {
  readonly #maxKeys: number | undefined;
  readonly #readerOf: (missing: MissingState) => StateReader;
  #reader: StateReader;

  /** `readerOf` returns a reader of what is known now. The reader notes in `missing` what is not. `maxKeys`: see MissingState. */
  constructor(readerOf: (missing: MissingState) => StateReader, maxKeys?: number) {
    this.#maxKeys = maxKeys;
    this.#readerOf = readerOf;
    this.#reader = readerOf(new MissingState(maxKeys));
  }

  /** Reads what is known now. Returns the notes of values that are not. */
  renew(): MissingState {
    const missing = new MissingState(this.#maxKeys);
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
