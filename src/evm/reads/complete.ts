import type { StateKeys, StateReader, StateValues } from "../../core/stateReader.ts";
import { CODES, RpcError } from "../../jsonrpc/rpcError.ts";
import type { ExecutionState } from "../executionState.ts";
import type { ReadRecorder } from "../readRecorder.ts";
import { Exploration } from "./exploration.ts";
import { IncompleteState } from "./incompleteState.ts";
import type { KnownState } from "./knownState.ts";
import { createMissingState, createStrictState } from "./missingState.ts";
import type { SteppedRun } from "./steppedRun.ts";

/** Values that one run may fetch. Each needs one to three calls to a node. */
const MAX_FETCHED = 10_000;

/** The state of a run: its known values, and the source of the others. */
export interface FetchedState {
  readonly known: KnownState;
  readonly fetch: (keys: StateKeys) => Promise<StateValues>;
}

export interface CompletedRun<T> {
  readonly result: T;
  /** Number of rounds that fetched state. */
  readonly rounds: number;
}

/** Runs on guesses for the missing values, fetches these values, and runs again. The caller's deadline limits the time. */
export const completeRun = async <T>(
  run: (state: StateReader) => Promise<T>,
  { known, fetch }: FetchedState,
): Promise<CompletedRun<T>> => {
  const rounds = new FetchRounds(known, fetch);
  const state = new IncompleteState(createMissingState, (missing) => known.reader(missing));
  const result = await state.complete(
    () => run(state),
    (missing) => rounds.fetch(missing),
  );
  return { result, rounds: rounds.count };
};

/**
 * Executes the run once. A step that lacks a value is executed again after a fetch, and earlier steps are not. The fetch has
 * the values that the step and those after it lack on guesses.
 */
export const completeSteps = async <T>(
  run: SteppedRun<T>,
  { known, fetch }: FetchedState,
  reads?: ReadRecorder | undefined,
): Promise<CompletedRun<T>> => {
  const rounds = new FetchRounds(known, fetch);
  const reader = new IncompleteState(createStrictState, (missing) => known.reader(missing));
  const state = run.createState(reader);
  const exploration = new Exploration(known, run);
  const results: unknown[] = [];
  const step = async <R>(execute: (state: ExecutionState) => R | Promise<R>): Promise<R> => {
    const result = await reader.complete(
      () => execute(state),
      async (missing) => {
        const keys = await exploration.missingKeys(results, state.changes());
        keys.add(missing);
        await rounds.fetch(keys.keys());
      },
    );
    results.push(result);
    return result;
  };
  const result = await run.execute({ step, reader, reads });
  return { result, rounds: rounds.count };
};

/** The fetches of one run. Above the limit of values it rejects with RpcError. */
class FetchRounds {
  readonly #known: KnownState;
  readonly #fetch: FetchedState["fetch"];
  #values = 0;
  #count = 0;

  constructor(known: KnownState, fetch: FetchedState["fetch"]) {
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
      throw new RpcError(
        CODES.INTERNAL,
        `execution aborted: it reads more than ${MAX_FETCHED} values that have to be fetched`,
      );
    }
    this.#known.add(await this.#fetch(keys));
  }
}
