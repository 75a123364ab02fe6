import type { AccountState, StateKeys, StateReader } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";
import { StateKeySet } from "./stateKeySet.ts";

const MAX_KEYS = 1_000;
/** Reads after the first guess. A run with more reads follows a wrong guess, and its keys are not useful. */
const MAX_READS = 5_000;
/** Consecutive slots that a run on guesses may read. More of them are a loop over a guessed length. */
const MAX_CONSECUTIVE = 16;

/** Stops a run that has guessed too much. The keys that it recorded before are fetched. */
class SpeculationLimitError extends Error {
  override readonly name = "SpeculationLimitError";
}

/** Records the values that a run read and that were not known. */
export class MissingState {
  readonly #maxKeys: number;
  readonly #keys = new StateKeySet();
  readonly #loops = createLoopGuard();
  #reads = 0;

  /** The run stops at the missing value of this number. With 1 it never goes on with a guess. */
  constructor(maxKeys = MAX_KEYS) {
    this.#maxKeys = maxKeys;
  }

  get count(): number {
    return this.#keys.size;
  }

  account(address: Address): void {
    this.#keys.addAccount(address);
    this.#checkKeys();
  }

  slot(address: Address, slot: Hash): void {
    if (this.#keys.hasSlot(address, slot)) {
      return;
    }
    this.#loops.check(address, slot, this.#keys.size === 0);
    this.#keys.addSlot(address, slot);
    this.#checkKeys();
  }

  blockHash(number: bigint): void {
    this.#keys.addBlockHash(number);
    this.#checkKeys();
  }

  /** Called at every read. Throws SpeculationLimitError if the run has guessed too much. */
  check(): void {
    if (this.#keys.size === 0) {
      return;
    }
    this.#reads++;
    if (this.#reads > MAX_READS) {
      throw new SpeculationLimitError();
    }
  }

  keys(): StateKeys {
    return this.#keys.keys();
  }

  #checkKeys(): void {
    if (this.#keys.size >= this.#maxKeys) {
      throw new SpeculationLimitError();
    }
  }
}

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

/** Throws SpeculationLimitError in a loop over consecutive slots that started after a guess. */
const createLoopGuard = () => {
  let last: { readonly address: Address; readonly slot: bigint } | undefined;
  let length = 0;
  let isExempt = false;
  return {
    check: (address: Address, hash: Hash, isFirst: boolean): void => {
      const slot = BigInt(hash);
      const continues = last?.address === address && last.slot + 1n === slot;
      if (!continues) {
        isExempt = isFirst;
      }
      length = continues ? length + 1 : 1;
      last = { address, slot };
      if (length > MAX_CONSECUTIVE && !isExempt) {
        throw new SpeculationLimitError();
      }
    },
  };
};
