import type { BlockId } from "../../core/heads.ts";
import type { StateKeys, StateSource, StateValues } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";
import { type FoundValue, singleKeys, stateValuesOf } from "../fetch/foundValues.ts";
import { accountKeys, keyName, type StateKey, ZERO_VALUE } from "../stateKey.ts";
import type { ValueStore } from "../store/valueStore.ts";
import type { CallReads } from "./callResult.ts";

export interface RunStateOptions {
  readonly values: Pick<ValueStore, "readableEntry" | "valueAt" | "gradeAt" | "code">;
  /** Returns the hash of an ancestor of a block. Undefined if the block is not canonical any more. */
  ancestorHash(number: bigint, block: BlockId): Hash | undefined;
}

/** How a run got a value. A guess is zero. */
type Origin = "proven" | "stated" | "guessed";

/** The state of one run, from known values alone. A balance or a nonce that is not known is zero for the run. */
export class RunState implements StateSource {
  readonly id: string;
  readonly expected: StateValues | undefined;
  /** The values for which the run ended. */
  missing: readonly StateKey[] | undefined;
  readonly #options: RunStateOptions;
  readonly #block: BlockId;
  /** The worst origin of each value that the run got, by the name of its key. */
  readonly #origins = new Map<string, Origin>();
  /** Accounts that are not empty, whatever is guessed. */
  readonly #filled = new Set<Address>();
  /** A thread has most codes. It requests an account again if it lacks the code. */
  readonly #sent = new Set<Address>();

  /** The known values of `expected` are sent with the run. */
  constructor(options: RunStateOptions, block: BlockId, expected?: StateKeys) {
    this.id = `known:${block.hash}`;
    this.#options = options;
    this.#block = block;
    this.expected = expected && this.#find(expected, []);
  }

  async read(keys: StateKeys): Promise<StateValues> {
    const missing: StateKey[] = [];
    const found = this.#find(keys, missing);
    const blockHashes = keys.blockHashes.flatMap((number) => {
      const hash = this.#options.ancestorHash(number, this.#block);
      return hash === undefined ? [] : [[number, hash] as const];
    });
    if (missing.length > 0 || blockHashes.length < keys.blockHashes.length) {
      this.missing = missing;
      throw new Error(`${missing.length} values are not known`);
    }
    return { ...found, blockHashes };
  }

  /** Returns the keys whose values were guesses. If the run read one, its result is worthless. */
  guessesAmong({ keys, emptiness }: CallReads): readonly StateKey[] {
    const parts = emptiness.filter((address) => !this.#filled.has(address)).flatMap(accountKeys);
    return [...keys, ...parts].filter((key) => this.#origins.get(keyName(key)) === "guessed");
  }

  /** Returns those of these keys for which the run did not get a proven value. */
  withoutProof(keys: readonly StateKey[]): readonly StateKey[] {
    return keys.filter((key) => this.#origins.get(keyName(key)) !== "proven");
  }

  #get(key: StateKey, name: string): string | undefined {
    const { values } = this.#options;
    const entry = values.readableEntry(key, this.#block);
    if (entry === 0) {
      return undefined;
    }
    this.#note(name, values.gradeAt(entry, this.#block) === "proven" ? "proven" : "stated");
    const value = values.valueAt(entry);
    if (value !== ZERO_VALUE && key.field !== "slot") {
      this.#filled.add(key.address);
    }
    return value;
  }

  #note(name: string, origin: Origin): void {
    const before = this.#origins.get(name);
    if (before === undefined || before === "proven" || origin === "guessed") {
      this.#origins.set(name, origin);
    }
  }

  #find(keys: StateKeys, missing: StateKey[]): StateValues {
    const found = new Map<string, FoundValue>();
    for (const key of singleKeys(keys)) {
      const name = keyName(key);
      const value = this.#get(key, name);
      const needsCode = key.field === "code" && this.#sent.has(key.address);
      const code = needsCode && value !== undefined ? this.#options.values.code(value) : undefined;
      if (value !== undefined && (code !== undefined || !needsCode)) {
        found.set(name, { key, value, code });
      } else if (key.field === "balance" || key.field === "nonce") {
        this.#note(name, "guessed");
        found.set(name, { key, value: ZERO_VALUE, code });
      } else {
        missing.push(key);
      }
    }
    const values = stateValuesOf(found);
    for (const [address] of values.accounts) {
      this.#sent.add(address);
    }
    return values;
  }
}
