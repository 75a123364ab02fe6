import type { StateKeys, StateReader, StateValues } from "../../core/stateReader.ts";
import { CODES, RpcError } from "../../jsonrpc/rpcError.ts";
import { DeadlineError } from "../deadlineError.ts";
import type { KnownState } from "./knownState.ts";
import { createMissingState } from "./missingState.ts";

/** Values that one run may fetch. Each needs one to three calls to a node. */
const MAX_FETCHED = 10_000;

export interface CompletedRun<T> {
  readonly result: T;
  /** Number of rounds that fetched state. */
  readonly rounds: number;
}

/**
 * Runs on known state, fetches what is missing, and runs again until nothing is missing. The number of values is limited here;
 * the time is limited by the caller's deadline.
 */
export const runUntilStateComplete = async <T>(
  known: KnownState,
  fetch: (keys: StateKeys) => Promise<StateValues>,
  run: (state: StateReader) => Promise<T>,
): Promise<CompletedRun<T>> => {
  let fetched = 0;
  for (let rounds = 0; ; rounds++) {
    const missing = createMissingState();
    const outcome = await attempt(run, known.reader(missing));
    if (missing.count === 0) {
      if ("error" in outcome) {
        throw outcome.error;
      }
      return { result: outcome.result, rounds };
    }
    fetched += missing.count;
    if (fetched > MAX_FETCHED) {
      throw tooMuch(`reads more than ${MAX_FETCHED} values that have to be fetched`);
    }
    // The outcome is based on guesses, so it is discarded.
    known.add(await fetch(missing.keys()));
  }
};

const tooMuch = (what: string): RpcError => new RpcError(CODES.INTERNAL, `execution aborted: it ${what}`);

type Outcome<T> = { readonly result: T } | { readonly error: unknown };

const attempt = async <T>(run: (state: StateReader) => Promise<T>, reader: StateReader): Promise<Outcome<T>> => {
  try {
    return { result: await run(reader) };
  } catch (error) {
    if (error instanceof DeadlineError) {
      throw error;
    }
    return { error };
  }
};
