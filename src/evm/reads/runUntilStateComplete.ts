import type { StateKeys, StateReader, StateValues } from "../../core/stateReader.ts";
import { CODES, RpcError } from "../../jsonrpc/rpcError.ts";
import { DeadlineError } from "../deadlineError.ts";
import type { KnownState } from "./knownState.ts";
import { createMissingState } from "./missingState.ts";

/** Values that one run may fetch. Each needs one to three calls to a node. */
const MAX_FETCHED = 10_000;

type Fetch = (keys: StateKeys) => Promise<StateValues>;

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
  fetch: Fetch,
  run: (state: StateReader) => Promise<T>,
): Promise<CompletedRun<T>> => {
  const fetchLimited = limitedFetch(fetch);
  for (let rounds = 0; ; rounds++) {
    const missing = createMissingState();
    const outcome = await attempt(run, known.reader(missing));
    if (missing.count === 0) {
      if ("error" in outcome) {
        throw outcome.error;
      }
      return { result: outcome.result, rounds };
    }
    // The outcome is based on guesses, so it is discarded.
    known.add(await fetchLimited(missing.keys()));
  }
};

/** Limits the values of one run. Above the limit it rejects with RpcError. */
export const limitedFetch = (fetch: Fetch): Fetch => {
  let fetched = 0;
  return async (keys) => {
    fetched += keys.accounts.length + keys.slots.length + keys.blockHashes.length;
    if (fetched > MAX_FETCHED) {
      throw new RpcError(
        CODES.INTERNAL,
        `execution aborted: it reads more than ${MAX_FETCHED} values that have to be fetched`,
      );
    }
    return fetch(keys);
  };
};

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
