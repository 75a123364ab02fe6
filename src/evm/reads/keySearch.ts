import type { StateChanges, StateKeys, StateReader } from "../../core/stateReader.ts";
import { DeadlineError } from "../executionErrors.ts";
import type { ExecutionState } from "../executionState.ts";
import type { SteppedRun } from "./complete.ts";
import { type GuessedValues, largeGuesses } from "./guesses.ts";
import { IncompleteState, type MissingState } from "./missingState.ts";
import { StateKeySet } from "./stateKeySet.ts";
import type { WrittenState } from "./writtenState.ts";

/** After this number of executions without a missing value, a step is not guessed again. */
const MAX_COMPLETE = 1;
/** For a step on guessed writes: its input depends on guesses too. */
const MAX_COMPLETE_CHAINED = 3;

const NO_CHANGES: StateChanges = new Map();

export interface KeySearchOptions {
  readonly run: SteppedRun<unknown>;
  /** Returns a reader of what is known now. It notes in `missing` what is not, and returns guesses. */
  readerOf(missing: MissingState, guesses: GuessedValues): StateReader;
  /** Returns guesses for a step that was executed `count` times. Default: large numbers. */
  guessesOf?(count: number): GuessedValues;
  /** Keys that one pass may find. */
  readonly maxKeys: number;
  /** Time limit of one pass, in milliseconds. */
  readonly maxMs: number;
}

/** What one step lacks. */
export interface FoundKeys {
  /** Position of the step. */
  readonly step: number;
  readonly keys: StateKeys;
  /** Number of executions of the step on guesses. */
  readonly count: number;
}

interface Guess {
  readonly result: unknown;
  readonly changes: StateChanges;
  readonly count: number;
  /** Number of executions in which the step lacked nothing, since it lacked a value. */
  readonly complete: number;
}

type Execute = (state: ExecutionState) => unknown;

/** Executes the steps of a run on guesses, to find the values that they will read. */
export class KeySearch {
  readonly #options: KeySearchOptions;
  /** The newest guess of each step, by position. */
  readonly #guesses = new Map<number, Guess>();

  constructor(options: KeySearchOptions) {
    this.#options = options;
  }

  /** The state of this step was fetched, as far as a node could report it. */
  close(step: number): void {
    const guess = this.#guesses.get(step);
    if (guess) {
      this.#guesses.set(step, { ...guess, complete: MAX_COMPLETE });
    }
  }

  /**
   * Executes the steps after those that have `results`, and returns the keys that they lack. The first of them is known to lack
   * some. With `written`, the writes of the steps that have results, each step is executed on the writes of those before it, which
   * are added. Else each is executed by itself.
   */
  async pass(results: readonly unknown[], written?: WrittenState): Promise<readonly FoundKeys[]> {
    const pass = new Pass(this.#options, written);
    const maxComplete = written ? MAX_COMPLETE_CHAINED : MAX_COMPLETE;
    let position = 0;
    const next = async (execute: Execute): Promise<unknown> => {
      const at = position++;
      if (at < results.length) {
        return results[at];
      }
      const earlier = this.#guesses.get(at);
      const isComplete = earlier !== undefined && earlier.complete >= maxComplete && at !== results.length;
      const guess = isComplete ? earlier : await pass.guess(execute, at, earlier);
      this.#guesses.set(at, guess);
      pass.written?.add(guess.changes);
      return guess.result;
    };
    try {
      await this.#options.run.execute({
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
    return pass.found;
  }
}

/** One execution on guesses. */
class Pass {
  readonly found: FoundKeys[] = [];
  readonly written: WrittenState | undefined;
  readonly reader: IncompleteState;
  readonly #options: KeySearchOptions;
  readonly #untilMs: number;
  #guesses = largeGuesses;
  /** Several steps may lack the same key. */
  readonly #keys = new StateKeySet();

  constructor(options: KeySearchOptions, written: WrittenState | undefined) {
    this.#options = options;
    this.written = written;
    this.#untilMs = performance.now() + options.maxMs;
    this.reader = new IncompleteState((missing) => options.readerOf(missing, this.#guesses));
  }

  /** Executes a step on a state of its own, to see whether the step itself reads a guess. */
  async guess(execute: Execute, step: number, earlier: Guess | undefined): Promise<Guess> {
    const { run, maxKeys, guessesOf } = this.#options;
    if (this.#keys.size > maxKeys || performance.now() > this.#untilMs) {
      throw new Error("a pass on guesses is at its limit");
    }
    const before = earlier?.count ?? 0;
    this.#guesses = guessesOf?.(before) ?? largeGuesses;
    const missing = this.reader.renew();
    const state = run.createState(this.written?.over(this.reader) ?? this.reader);
    try {
      const result = await execute(state);
      const complete = missing.count > 0 ? 0 : (earlier?.complete ?? 0) + 1;
      return { result, changes: this.written ? state.changes() : NO_CHANGES, count: before + 1, complete };
    } finally {
      if (missing.count > 0) {
        const keys = missing.keys();
        this.#keys.add(keys);
        this.found.push({ step, keys, count: before + 1 });
      }
    }
  }
}
