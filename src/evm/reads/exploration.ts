import type { StateChanges } from "../../core/stateReader.ts";
import { DeadlineError } from "../deadlineError.ts";
import type { ExecutionState } from "../executionState.ts";
import type { CachedState } from "./cachedState.ts";
import { IncompleteState } from "./incompleteState.ts";
import { MissingState } from "./missingState.ts";
import { StateKeySet } from "./stateKeySet.ts";
import type { SteppedRun } from "./steppedRun.ts";
import { WrittenState } from "./writtenState.ts";

/** Keys that one pass may find. */
const MAX_KEYS = 1_000;
/** After this number of passes without a missing value, a step is not guessed again. More than one: its input depends on guesses too. */
const MAX_COMPLETE = 3;

interface Guess {
  readonly result: unknown;
  readonly changes: StateChanges;
  /** Number of passes in which the step lacked nothing, since it lacked a value. */
  readonly complete: number;
}

/** Executes the steps of a run on guesses, to find the values that they will read. */
export class Exploration {
  readonly #known: CachedState;
  readonly #run: SteppedRun<unknown>;
  /** The newest guess of each step, by position. */
  readonly #guesses = new Map<number, Guess>();

  constructor(known: CachedState, run: SteppedRun<unknown>) {
    this.#known = known;
    this.#run = run;
  }

  /** Executes the steps after those that have `results` and have made the changes `written`. Returns the keys that they lack. */
  async missingKeys(results: readonly unknown[], written: StateChanges): Promise<StateKeySet> {
    const pass = new Pass(this.#known, this.#run, written);
    let position = 0;
    const next = async (execute: (state: ExecutionState) => unknown): Promise<unknown> => {
      const at = position++;
      if (at < results.length) {
        return results[at];
      }
      const earlier = this.#guesses.get(at);
      const isComplete = at > results.length && earlier !== undefined && earlier.complete >= MAX_COMPLETE;
      const guess = isComplete ? earlier : await pass.guess(execute, earlier);
      this.#guesses.set(at, guess);
      pass.written.add(guess.changes);
      return guess.result;
    };
    try {
      await this.#run.execute({
        step: async <R>(execute: (state: ExecutionState) => R | Promise<R>) => (await next(execute)) as R,
        reader: pass.reader,
        reads: undefined,
      });
    } catch (error) {
      // Another error is due to a guess, or the run throws it too when its values are known.
      if (error instanceof DeadlineError) {
        throw error;
      }
    }
    return pass.keys;
  }
}

/** One execution on guesses. */
class Pass {
  readonly keys = new StateKeySet();
  readonly written = new WrittenState();
  readonly reader: IncompleteState;
  readonly #run: SteppedRun<unknown>;

  constructor(known: CachedState, run: SteppedRun<unknown>, written: StateChanges) {
    this.#run = run;
    this.reader = new IncompleteState(MissingState, (missing) => known.reader(missing));
    this.written.add(written);
  }

  /** Executes a step on a state of its own, to see whether the step itself reads a guess. */
  async guess(execute: (state: ExecutionState) => unknown, earlier: Guess | undefined): Promise<Guess> {
    if (this.keys.size > MAX_KEYS) {
      throw new Error("a pass on guesses found enough keys");
    }
    const missing = this.reader.renew();
    const state = this.#run.createState(this.written.over(this.reader));
    try {
      const result = await execute(state);
      const complete = missing.count > 0 ? 0 : (earlier?.complete ?? 0) + 1;
      return { result, changes: state.changes(), complete };
    } finally {
      this.keys.add(missing.keys());
    }
  }
}
