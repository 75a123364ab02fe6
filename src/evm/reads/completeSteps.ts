import type { StateKeys, StateValues } from "../../core/stateReader.ts";
import { DeadlineError } from "../deadlineError.ts";
import type { ExecutionState } from "../executionState.ts";
import type { ReadRecorder } from "../readRecorder.ts";
import { Exploration } from "./exploration.ts";
import type { KnownState } from "./knownState.ts";
import { createStrictState, type MissingState } from "./missingState.ts";
import { type CompletedRun, limitedFetch } from "./runUntilStateComplete.ts";
import type { Step, SteppedRun } from "./steppedRun.ts";
import { SwitchedReader } from "./switchedReader.ts";

export interface SteppedRunOptions {
  readonly known: KnownState;
  readonly fetch: (keys: StateKeys) => Promise<StateValues>;
  readonly reads?: ReadRecorder | undefined;
}

/** Executes the run once. A step that lacks a value is executed again after a fetch, and earlier steps are not. */
export const completeSteps = <T>(run: SteppedRun<T>, options: SteppedRunOptions): Promise<CompletedRun<T>> =>
  new StepsOnKnownState(run, options).complete();

class StepsOnKnownState<T> {
  readonly #run: SteppedRun<T>;
  readonly #known: KnownState;
  readonly #fetch: SteppedRunOptions["fetch"];
  readonly #reads: ReadRecorder | undefined;
  readonly #reader: SwitchedReader;
  readonly #state: ExecutionState;
  readonly #exploration: Exploration;
  /** The results of the steps that were executed. */
  readonly #results: unknown[] = [];
  #missing: MissingState;
  #rounds = 0;

  constructor(run: SteppedRun<T>, { known, fetch, reads }: SteppedRunOptions) {
    this.#run = run;
    this.#known = known;
    this.#fetch = limitedFetch(fetch);
    this.#reads = reads;
    this.#missing = createStrictState();
    this.#reader = new SwitchedReader(known.reader(this.#missing));
    this.#state = run.createState(this.#reader);
    this.#exploration = new Exploration(known, run);
  }

  async complete(): Promise<CompletedRun<T>> {
    const step: Step = (execute) => this.#step(execute);
    const result = await this.#run.execute({ step, reader: this.#reader, reads: this.#reads });
    return { result, rounds: this.#rounds };
  }

  async #step<R>(execute: (state: ExecutionState) => R | Promise<R>): Promise<R> {
    for (;;) {
      const missing = this.#missing;
      try {
        const result = await execute(this.#state);
        this.#results.push(result);
        return result;
      } catch (error) {
        if (missing.count === 0 || error instanceof DeadlineError) {
          throw error;
        }
      }
      this.#rounds++;
      const keys = await this.#exploration.missingKeys(this.#results, this.#state.changes());
      keys.add(missing.keys());
      this.#known.add(await this.#fetch(keys.keys()));
      this.#missing = createStrictState();
      this.#reader.target = this.#known.reader(this.#missing);
    }
  }
}
