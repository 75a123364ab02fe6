import type { StateKeys, StateReader, StateValues } from "../../core/stateReader.ts";
import { TooManyReadsError } from "../executionErrors.ts";
import type { ReadRecorder } from "../readRecorder.ts";
import type { CachedState } from "./cachedState.ts";
import type { Completion, RunProgress, SteppedRun } from "./complete.ts";
import { KeySearch } from "./keySearch.ts";
import type { MissingState } from "./missingState.ts";
import { StateKeySet } from "./stateKeySet.ts";
import { WrittenState } from "./writtenState.ts";

/** Values that one run may fetch. Each needs one to three calls to a node. */
const MAX_FETCHED = 10_000;
/** Limits of a pass on guesses. The deadline of the run limits its time. */
const PASS_LIMITS = { maxKeys: 1_000, maxMs: Number.POSITIVE_INFINITY };

/** The state of a run: its known values, and the source of the others. */
export interface FetchedState {
  readonly known: CachedState;
  readonly fetch: (keys: StateKeys) => Promise<StateValues>;
  readonly reads?: ReadRecorder | undefined;
}

/** Completes a run from a cached state. Each round fetches the values that a step and those after it lack on guesses. */
export class FetchRounds implements Completion {
  readonly reads: ReadRecorder | undefined;
  readonly #run: SteppedRun<unknown>;
  readonly #state: FetchedState;
  readonly #search: KeySearch;
  #values = 0;
  #count = 0;

  constructor(run: SteppedRun<unknown>, state: FetchedState) {
    this.reads = state.reads;
    this.#run = run;
    this.#state = state;
    this.#search = new KeySearch({
      ...PASS_LIMITS,
      run,
      readerOf: (missing, guesses) => state.known.reader(missing, guesses),
    });
  }

  /** Number of rounds that fetched state. */
  get count(): number {
    return this.#count;
  }

  readerOf(missing: MissingState): StateReader {
    return this.#state.known.reader(missing);
  }

  /** Above the limit of values it rejects with TooManyReadsError. */
  async fetch(missing: StateKeys, { results, state }: RunProgress): Promise<void> {
    const keys = new StateKeySet();
    keys.add(missing);
    if (!this.#run.isWhole) {
      const written = new WrittenState();
      written.add(state.changes());
      for (const found of await this.#search.pass(results, written)) {
        keys.add(found.keys);
      }
    }
    this.#count++;
    this.#values += keys.size;
    if (this.#values > MAX_FETCHED) {
      throw new TooManyReadsError(
        `execution aborted: it reads more than ${MAX_FETCHED} values that have to be fetched`,
      );
    }
    this.#state.known.add(await this.#state.fetch(keys.keys()));
  }
}
