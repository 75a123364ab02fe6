import type { StateKeys, StateReader } from "../../core/stateReader.ts";
import { DeadlineError } from "../deadlineError.ts";
import type { ExecutionState } from "../executionState.ts";
import type { ReadRecorder } from "../readRecorder.ts";
import { IncompleteState } from "./incompleteState.ts";
import type { MissingState } from "./missingState.ts";
import type { SteppedRun } from "./steppedRun.ts";

/** What a run has done before it lacks a value. */
export interface RunProgress {
  /** Of the steps that have ended, in their order. */
  readonly results: readonly unknown[];
  /** The state after these steps. */
  readonly state: ExecutionState;
}

/** How a run gets the values that it lacks. */
export interface Completion {
  /** Returns a reader of what is known now. It notes in `missing` what is not. */
  readerOf(missing: MissingState): StateReader;
  /** Makes missing values known. */
  fetch(missing: StateKeys, progress: RunProgress): Promise<void>;
  readonly reads?: ReadRecorder | undefined;
}

/**
 * Executes a run once, on known values alone, and returns its result and the state after it. A step that lacks a value is executed
 * again after a fetch, and earlier steps are not. Throws the error of a step that lacked no value, DeadlineError, and the error of
 * `fetch`. The caller's deadline limits the time.
 */
export const complete = async <T>(
  run: SteppedRun<T>,
  completion: Completion,
): Promise<{ readonly result: T; readonly state: ExecutionState }> => {
  const reader = new IncompleteState((missing) => completion.readerOf(missing), 1);
  const state = run.createState(reader);
  const results: unknown[] = [];
  const step = async <R>(execute: (state: ExecutionState) => R | Promise<R>): Promise<R> => {
    for (;;) {
      const missing = reader.renew();
      try {
        const result = await execute(state);
        if (missing.count === 0) {
          results.push(result);
          return result;
        }
      } catch (error) {
        if (missing.count === 0 || error instanceof DeadlineError) {
          throw error;
        }
      }
      await completion.fetch(missing.keys(), { results, state });
    }
  };
  return { result: await run.execute({ step, reader, reads: completion.reads }), state };
};
