import type { StateKeys, StateReader, StateValues } from "../../core/stateReader.ts";
import type { ExecutionState } from "../executionState.ts";
import type { ReadRecorder } from "../readRecorder.ts";
import { TooManyReadsError } from "../tooManyReadsError.ts";
import type { CachedState } from "./cachedState.ts";
import { IncompleteState } from "./incompleteState.ts";
import { KeySearch } from "./keySearch.ts";
import { FirstMissing, MissingState } from "./missingState.ts";
import { StateKeySet } from "./stateKeySet.ts";
import type { SteppedRun } from "./steppedRun.ts";
import { WrittenState } from "./writtenState.ts";

/** Values that one run may fetch. Each needs one to three calls to a node. */
const MAX_FETCHED = 10_000;
/** Limits of a pass on guesses. The deadline of the run limits its time. */
const PASS_LIMITS = { maxKeys: 1_000, maxMs: Number.POSITIVE_INFINITY };

/** The state of a run: its known values, and the source of the others. */
export interface FetchedState {
  readonly known: CachedState;
  readonly fetch: (keys: StateKeys) => Promise<StateValues>;
}

export interface CompletedRun<T> {
  readonly result: T;
  /** Number of rounds that fetched state. */
  readonly rounds: number;
}

/** What a run in steps has done before it lacks a value. */
export interface RunProgress {
  /** Of the steps that have ended, in their order. */
  readonly results: readonly unknown[];
  /** The state after these steps. */
  readonly state: ExecutionState;
}

/** How a run in steps gets the values that it lacks. */
export interface StepCompletion {
  /** Returns a reader of what is known now. It notes in `missing` what is not. */
  readerOf(missing: MissingState): StateReader;
  /** Makes missing values known. */
  fetch(missing: StateKeys, progress: RunProgress): Promise<void>;
  readonly reads?: ReadRecorder | undefined;
}

/**
 * Executes a run in steps once, on known values alone, and returns its result and the state after it. A step that lacks a value
 * is executed again after a fetch, and earlier steps are not.
 */
export const complete = async <T>(
  run: SteppedRun<T>,
  { readerOf, fetch, reads }: StepCompletion,
): Promise<{ readonly result: T; readonly state: ExecutionState }> => {
  const reader = new IncompleteState(FirstMissing, readerOf);
  const state = run.createState(reader);
  const results: unknown[] = [];
  const step = async <R>(execute: (state: ExecutionState) => R | Promise<R>): Promise<R> => {
    const result = await reader.complete(
      () => execute(state),
      (missing) => fetch(missing, { results, state }),
    );
    results.push(result);
    return result;
  };
  return { result: await run.execute({ step, reader, reads }), state };
};

/** Runs on guesses for the missing values, fetches these values, and runs again. The caller's deadline limits the time. */
export const completeRun = async <T>(
  run: (state: StateReader) => Promise<T>,
  { known, fetch }: FetchedState,
): Promise<CompletedRun<T>> => {
  const rounds = new FetchRounds(known, fetch);
  const state = new IncompleteState(MissingState, (missing) => known.reader(missing));
  const result = await state.complete(
    () => run(state),
    (missing) => rounds.fetch(missing),
  );
  return { result, rounds: rounds.count };
};

/** Completes a run in steps. Each fetch has the values that the step and those after it lack on guesses. */
export const completeSteps = async <T>(
  run: SteppedRun<T>,
  { known, fetch }: FetchedState,
  reads?: ReadRecorder | undefined,
): Promise<CompletedRun<T>> => {
  const rounds = new FetchRounds(known, fetch);
  const search = new KeySearch({
    ...PASS_LIMITS,
    run,
    readerOf: (missing, guesses) => known.reader(missing, guesses),
  });
  const { result } = await complete(run, {
    readerOf: (missing) => known.reader(missing),
    fetch: async (missing, { results, state }) => {
      const keys = new StateKeySet();
      keys.add(missing);
      const written = new WrittenState();
      written.add(state.changes());
      for (const found of await search.pass(results, written)) {
        keys.add(found.keys);
      }
      await rounds.fetch(keys.keys());
    },
    reads,
  });
  return { result, rounds: rounds.count };
};

/** The fetches of one run. Above the limit of values it rejects with TooManyReadsError. */
class FetchRounds {
  readonly #known: CachedState;
  readonly #fetch: FetchedState["fetch"];
  #values = 0;
  #count = 0;

  constructor(known: CachedState, fetch: FetchedState["fetch"]) {
    this.#known = known;
    this.#fetch = fetch;
  }

  get count(): number {
    return this.#count;
  }

  async fetch(keys: StateKeys): Promise<void> {
    this.#count++;
    this.#values += keys.accounts.length + keys.slots.length + keys.blockHashes.length;
    if (this.#values > MAX_FETCHED) {
      throw new TooManyReadsError(
        `execution aborted: it reads more than ${MAX_FETCHED} values that have to be fetched`,
      );
    }
    this.#known.add(await this.#fetch(keys));
  }
}
