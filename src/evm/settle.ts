import type { StateKeys, StateReader, StateValues } from "../chain/stateReader.ts";
import type { KnownState } from "./knownState.ts";
import { createMissingState } from "./missingState.ts";

/** A run reads what earlier rounds led it to; each round brings everything that the one before lacked. */
const MAX_ROUNDS = 64;

export interface Settled<T> {
  readonly result: T;
  /** Rounds of fetching that it took. */
  readonly rounds: number;
}

/** Runs on what is known, and again whenever what it lacked has come, until it lacks nothing. */
export const settle = async <T>(
  known: KnownState,
  fetch: (keys: StateKeys) => Promise<StateValues>,
  run: (state: StateReader) => Promise<T>,
): Promise<Settled<T>> => {
  for (let rounds = 0; rounds <= MAX_ROUNDS; rounds++) {
    const missing = createMissingState();
    const outcome = await attempt(run, known.reader(missing));
    if (missing.count === 0) {
      if ("error" in outcome) throw outcome.error;
      return { result: outcome.result, rounds };
    }
    // Whatever came of it came of guesses.
    known.add(await fetch(missing.keys()));
  }
  throw new Error(`the state that a run needs was not complete after ${MAX_ROUNDS} rounds`);
};

type Outcome<T> = { readonly result: T } | { readonly error: unknown };

const attempt = async <T>(run: (state: StateReader) => Promise<T>, reader: StateReader): Promise<Outcome<T>> => {
  try {
    return { result: await run(reader) };
  } catch (error) {
    return { error };
  }
};
