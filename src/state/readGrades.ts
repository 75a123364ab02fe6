import { type Grade, weakestGrade } from "../core/grade.ts";
import type { Address } from "../ethereum/hex.ts";
import type { CallReads } from "./calls/callResult.ts";
import type { FoundValue } from "./fetch/foundValues.ts";
import { accountKeys, keyName, type StateKey, ZERO_VALUE } from "./stateKey.ts";

/** What one run got: the weakest grade of each value. A guess has none. */
export class ReadGrades {
  readonly #grades = new Map<string, Grade | undefined>();
  /** Accounts that are not empty, whatever is guessed. */
  readonly #filled = new Set<Address>();

  note({ key, value }: Pick<FoundValue, "key" | "value">, grade: Grade | undefined): void {
    const name = keyName(key);
    const before = this.#grades.get(name) ?? (this.#grades.has(name) ? undefined : grade);
    this.#grades.set(name, before && grade && weakestGrade([before, grade]));
    if (value !== ZERO_VALUE && key.field !== "slot") {
      this.#filled.add(key.address);
    }
  }

  /** Returns the keys whose values were guesses. If the run read one, its result is worthless. */
  guessesAmong({ keys, emptiness }: Pick<CallReads, "keys" | "emptiness">): readonly StateKey[] {
    const parts = emptiness.filter((address) => !this.#filled.has(address)).flatMap(accountKeys);
    return [...keys, ...parts].filter((key) => this.#isGuess(key));
  }

  /** Returns those of these keys whose values are not proven. */
  unprovenAmong(keys: readonly StateKey[]): readonly StateKey[] {
    return keys.filter((key) => this.#gradeOf(key) !== "proven");
  }

  /** Returns the weakest grade of these values. */
  weakestOf(keys: readonly StateKey[]): Grade {
    return weakestGrade(keys.map((key) => this.#gradeOf(key)));
  }

  #isGuess(key: StateKey): boolean {
    const name = keyName(key);
    return this.#grades.has(name) && this.#grades.get(name) === undefined;
  }

  #gradeOf(key: StateKey): Grade | undefined {
    return this.#grades.get(keyName(key));
  }
}
