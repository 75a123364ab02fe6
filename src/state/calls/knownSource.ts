import type { BlockId } from "../../core/heads.ts";
import type { ReadSet } from "../../core/readSet.ts";
import type { StateKeys, StateSource, StateValues } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";
import { keyName, type StateKey } from "../stateKey.ts";
import { StateValuesBuilder } from "../store/stateValuesBuilder.ts";
import type { ValueStore } from "../store/valueStore.ts";
import { ZERO_VALUE } from "../store/writtenValues.ts";

/** A run needs values that are not known. */
export class MissingValuesError extends Error {
  override readonly name = "MissingValuesError";
  readonly keys: readonly StateKey[];

  constructor(keys: readonly StateKey[]) {
    super(`${keys.length} values are not known`);
    this.keys = keys;
  }
}

/** The state and the block hashes that need no node. */
export interface KnownValues {
  readonly values: Pick<ValueStore, "get" | "code" | "hasProof">;
  /** Returns the hash of an ancestor of a block. Undefined if the block is not canonical any more. */
  ancestorHash(number: bigint, block: BlockId): Hash | undefined;
}

type GuessedField = "balance" | "nonce";

/** Keys that a run probably reads. Their known values are sent with the run. */
export interface ExpectedReads {
  readonly accounts: readonly Address[];
  readonly slots: readonly (readonly [Address, Hash])[];
}

const keyOf = (address: Address, field: StateKey["field"]): StateKey => ({ field, address, slot: undefined });

/**
 * The state of one run, from known values alone. `read` rejects with MissingValuesError if a value is not known. A balance or
 * a nonce that is not known is zero for the run: after the run, `guessedReads` returns those that it read.
 */
export class KnownSource implements StateSource {
  readonly id: string;
  readonly #state: KnownValues;
  readonly #block: BlockId;
  readonly expected: StateValues | undefined;
  readonly #guessed = new Map<Address, Set<GuessedField>>();
  /** Accounts that are empty only because of a guess. */
  readonly #guessedEmpty = new Set<Address>();
  /** The names of the keys whose values the run got: proven ones, and others. */
  readonly #proven = new Set<string>();
  readonly #stated = new Set<string>();
  /** A thread has most codes. It requests an account again if it lacks the code. */
  readonly #sent = new Set<Address>();

  constructor(state: KnownValues, block: BlockId, expected: ExpectedReads | undefined) {
    this.id = `known:${block.hash}`;
    this.#state = state;
    this.#block = block;
    this.expected = expected && this.#findExpected(expected);
  }

  async read({ accounts, slots, blockHashes }: StateKeys): Promise<StateValues> {
    const missing: StateKey[] = [];
    const found = new StateValuesBuilder();
    for (const address of accounts) {
      this.#findAccount(address, found, missing);
    }
    for (const [address, slot] of slots) {
      this.#findSlot(address, slot, found, missing);
    }
    const hashes = blockHashes.flatMap((number) => {
      const hash = this.#state.ancestorHash(number, this.#block);
      return hash === undefined ? [] : [[number, hash] as const];
    });
    if (missing.length > 0 || hashes.length < blockHashes.length) {
      throw new MissingValuesError(missing);
    }
    return { ...found.values, blockHashes: hashes };
  }

  /** Returns the keys that a run read and that were guesses. If there is one, the result is worthless. */
  guessedReads({ accounts }: ReadSet): readonly StateKey[] {
    return accounts.flatMap(({ address, fields }) => {
      const guessed = [...(this.#guessed.get(address) ?? [])];
      const hasReadGuess = fields.includes("emptiness") && this.#guessedEmpty.has(address);
      return guessed.filter((field) => fields.includes(field) || hasReadGuess).map((field) => keyOf(address, field));
    });
  }

  /** Whether the run got a proven value for each of these keys. */
  hasProven(keys: readonly StateKey[]): boolean {
    return keys.map(keyName).every((name) => this.#proven.has(name) && !this.#stated.has(name));
  }

  #get(key: StateKey): string | undefined {
    const { values } = this.#state;
    const value = values.get(key, this.#block);
    if (value !== undefined) {
      const got = values.hasProof(key, this.#block) ? this.#proven : this.#stated;
      got.add(keyName(key));
    }
    return value;
  }

  #findAccount(address: Address, found: StateValuesBuilder, missing: StateKey[]): void {
    const codeKey = keyOf(address, "code");
    const codeHash = this.#get(codeKey);
    if (codeHash === undefined) {
      missing.push(codeKey);
      return;
    }
    if (this.#sent.has(address) && codeHash !== ZERO_VALUE) {
      const code = this.#state.values.code(codeHash);
      if (code === undefined) {
        missing.push(codeKey);
        return;
      }
      found.addCode(codeHash, code);
    }
    this.#sent.add(address);
    const balance = this.#getOrGuess(address, "balance");
    const nonce = this.#getOrGuess(address, "nonce");
    const isEmpty = [codeHash, balance, nonce].every((value) => value === ZERO_VALUE);
    if (isEmpty && this.#guessed.has(address)) {
      this.#guessedEmpty.add(address);
    }
    found.addAccount(address, balance, nonce, codeHash);
  }

  #getOrGuess(address: Address, field: GuessedField): string {
    const value = this.#get(keyOf(address, field));
    if (value !== undefined) {
      return value;
    }
    const guessed = this.#guessed.get(address) ?? new Set();
    this.#guessed.set(address, guessed.add(field));
    return ZERO_VALUE;
  }

  #findSlot(address: Address, slot: Hash, found: StateValuesBuilder, missing: StateKey[]): void {
    const key: StateKey = { field: "slot", address, slot };
    const value = this.#get(key);
    if (value === undefined) {
      missing.push(key);
    } else {
      found.addSlot(address, slot, value);
    }
  }

  /** Values that are not known are left to the run, which may not read them. */
  #findExpected({ accounts, slots }: ExpectedReads): StateValues {
    const found = new StateValuesBuilder();
    for (const address of accounts) {
      this.#findAccount(address, found, []);
    }
    for (const [address, slot] of slots) {
      this.#findSlot(address, slot, found, []);
    }
    return found.values;
  }
}
