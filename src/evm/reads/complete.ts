import type { PlainCall, StateKeys, StateReader, StateValues } from "../../core/stateReader.ts";
import type { Rules } from "../../ethereum/rules.ts";
import type { Engine } from "../engine.ts";
import { DeadlineError } from "../executionErrors.ts";
import type { ExecutionState } from "../executionState.ts";
import type { ReadRecorder } from "../readRecorder.ts";
import type { CachedState } from "./cachedState.ts";
import { IncompleteState, type MissingState } from "./missingState.ts";

/**
 * Executes a step on the state after all earlier steps, and returns its result. If a read throws, the step is executed again.
 * So it either leaves the state as it was, or can be repeated.
 */
export type Step = <R>(execute: (state: ExecutionState) => R | Promise<R>) => Promise<R>;

export interface Steps {
  readonly step: Step;
  /** The state before the run, for use within the steps. */
  readonly reader: StateReader;
  readonly reads: ReadRecorder | undefined;
}

/** A run over one or more executions. */
export interface SteppedRun<T> {
  /**
   * The run has one step. If it lacks a value, it goes on with guesses to find what else it lacks, and is executed again on a new
   * state. Default: no.
   */
  readonly isWhole?: boolean;
  createState(reader: StateReader): ExecutionState;
  /** Executes the run. Only its steps read state. Everything else depends on the results of the steps alone. */
  execute(steps: Steps): Promise<T>;
}

/** The part of a thread that a run uses. */
export interface WorkerContext {
  engine(rules: Rules): Engine;
  /** Returns the result of the run on the state of its block. Throws the run's error. */
  complete<T>(run: SteppedRun<T>): Promise<T>;
}

/** The part of a thread that a run uses which fetches its state itself. */
export interface FetchingContext extends WorkerContext {
  /** The values of the run's state that this thread has. */
  readonly known: CachedState;
  /** Returns values that this thread lacks. `calls` will run on the same state: what they read may be among the values. */
  fetch(keys: StateKeys, calls?: readonly PlainCall[]): Promise<StateValues>;
}

/** What a run has done before it lacks a value. */
export interface RunProgress {
  /** Of the steps that have ended, in their order. */
  readonly results: readonly unknown[];
  /** The state after these steps. */
  readonly state: ExecutionState;
}

/** How a run gets the values that it lacks. */
export interface Completion {
  /** Returns a reader of what is known now. It notes in `missing` what is not, and returns guesses. */
  readerOf(missing: MissingState): StateReader;
  /** Makes missing values known. */
  fetch(missing: StateKeys, progress: RunProgress): Promise<void>;
  readonly reads?: ReadRecorder | undefined;
}

/**
 * Executes a run and returns its result and the state after it, which depend on known values alone. A step that lacks a value is executed
 * again after a fetch, and earlier steps are not. Throws the error of a step that lacked no value, DeadlineError, and the error of
 * `fetch`. The caller's deadline limits the time.
 */
export const complete = async <T>(
  run: SteppedRun<T>,
  completion: Completion,
): Promise<{ readonly result: T; readonly state: ExecutionState }> => {
  const reader = new IncompleteState((missing) => completion.readerOf(missing), run.isWhole ? undefined : 1);
  let state = run.createState(reader);
  const results: unknown[] = [];
  const step = async <R>(execute: (state: ExecutionState) => R | Promise<R>): Promise<R> => {
    for (;;) {
      const missing = reader.renew();
      const ended = await attempt(() => execute(state), missing);
      if (ended !== undefined) {
        results.push(ended.result);
        return ended.result;
      }
      if (run.isWhole) {
        completion.reads?.clear();
        state = run.createState(reader);
      }
      await completion.fetch(missing.keys(), { results, state });
    }
  };
  const result = await run.execute({ step, reader, reads: completion.reads });
  return { result, state };
};

/** Returns undefined if the execution lacked a value. Throws DeadlineError, and the error of an execution that lacked none. */
const attempt = async <R>(
  execute: () => R | Promise<R>,
  missing: MissingState,
): Promise<{ readonly result: R } | undefined> => {
  try {
    const result = await execute();
    return missing.count === 0 ? { result } : undefined;
  } catch (error) {
    if (missing.count === 0 || error instanceof DeadlineError) {
      throw error;
    }
    return undefined;
  }
};
