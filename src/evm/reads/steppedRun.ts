import type { PlainCall, StateKeys, StateReader, StateValues } from "../../core/stateReader.ts";
import type { Rules } from "../../ethereum/rules.ts";
import type { Engine } from "../engine.ts";
import type { ExecutionState } from "../executionState.ts";
import type { ReadRecorder } from "../readRecorder.ts";
import type { CachedState } from "./cachedState.ts";

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
