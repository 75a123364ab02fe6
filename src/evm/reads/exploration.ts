import type { AccountState, StateChanges, StateReader } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";
import { DeadlineError } from "../deadlineError.ts";
import type { ExecutionState } from "../executionState.ts";
import type { CachedState } from "./cachedState.ts";
import { IncompleteState } from "./incompleteState.ts";
import { createMissingState } from "./missingState.ts";
import { StateKeySet } from "./stateKeySet.ts";
import type { SteppedRun } from "./steppedRun.ts";

/** Keys that one pass may find. */
const MAX_KEYS = 1_000;
/** After this number of passes without a missing value, a step is not guessed again. More than one: its input depends on guesses too. */
const MAX_COMPLETE = 3;

interface Guess {
  readonly result: unknown;
  readonly changes: StateChanges;
  /** Number of passes in which the step lacked nothing, since it lacked a value. */
  readonly complete: number;
}

/** Executes the steps of a run on guesses, to find the values that they will read. */
export class Exploration {
  readonly #known: CachedState;
  readonly #run: SteppedRun<unknown>;
  /** The newest guess of each step, by position. */
  readonly #guesses = new Map<number, Guess>();

  constructor(known: CachedState, run: SteppedRun<unknown>) {
    this.#known = known;
    this.#run = run;
  }

  /** Executes the steps after those that have `results` and have made the changes `written`. Returns the keys that they lack. */
  async missingKeys(results: readonly unknown[], written: StateChanges): Promise<StateKeySet> {
    const pass = new Pass(this.#known, this.#run, written);
    let position = 0;
    const next = async (execute: (state: ExecutionState) => unknown): Promise<unknown> => {
      const at = position++;
      if (at < results.length) {
        return results[at];
      }
      const earlier = this.#guesses.get(at);
      const isComplete = at > results.length && earlier !== undefined && earlier.complete >= MAX_COMPLETE;
      const guess = isComplete ? earlier : await pass.guess(execute, earlier);
      this.#guesses.set(at, guess);
      pass.written.add(guess.changes);
      return guess.result;
    };
    try {
      await this.#run.execute({
        step: async <R>(execute: (state: ExecutionState) => R | Promise<R>) => (await next(execute)) as R,
        reader: pass.reader,
        reads: undefined,
      });
    } catch (error) {
      // Another error is due to a guess, or the run throws it too when its values are known.
      if (error instanceof DeadlineError) {
        throw error;
      }
    }
    return pass.keys;
  }
}

/** One execution on guesses. */
class Pass {
  readonly keys = new StateKeySet();
  readonly written = new WrittenState();
  readonly reader: IncompleteState;
  readonly #run: SteppedRun<unknown>;

  constructor(known: CachedState, run: SteppedRun<unknown>, written: StateChanges) {
    this.#run = run;
    this.reader = new IncompleteState(createMissingState, (missing) => known.reader(missing));
    this.written.add(written);
  }

  /** Executes a step on a state of its own, to see whether the step itself reads a guess. */
  async guess(execute: (state: ExecutionState) => unknown, earlier: Guess | undefined): Promise<Guess> {
    if (this.keys.size > MAX_KEYS) {
      throw new Error("a pass on guesses found enough keys");
    }
    const missing = this.reader.renew();
    const state = this.#run.createState(this.written.over(this.reader));
    try {
      const result = await execute(state);
      const complete = missing.count > 0 ? 0 : (earlier?.complete ?? 0) + 1;
      return { result, changes: state.changes(), complete };
    } finally {
      this.keys.add(missing.keys());
    }
  }
}

const NOTHING = new Uint8Array(0);

interface WrittenAccount {
  account: AccountState | undefined;
  /** Slots that were not written are zero. */
  isCleared: boolean;
  readonly slots: Map<Hash, Uint8Array>;
}

/** The writes of transactions, above a state that does not contain them. */
class WrittenState {
  readonly #accounts = new Map<Address, WrittenAccount>();
  readonly #codes = new Map<Hash, Uint8Array>();

  /** Adds the writes of the next transaction. */
  add(changes: StateChanges): void {
    for (const [address, { account, code, isCleared, slots }] of changes) {
      const written = this.#accounts.get(address) ?? { account, isCleared: false, slots: new Map<Hash, Uint8Array>() };
      written.account = account;
      if (isCleared) {
        written.isCleared = true;
        written.slots.clear();
      }
      for (const [slot, value] of slots) {
        written.slots.set(slot, value);
      }
      this.#accounts.set(address, written);
      if (account !== undefined && code !== undefined) {
        this.#codes.set(account.codeHash, code);
      }
    }
  }

  /** Reads these writes, and from `base` what was not written. */
  over(base: StateReader): StateReader {
    return {
      account: (address) => {
        const written = this.#accounts.get(address);
        return written === undefined ? base.account(address) : written.account;
      },
      code: (hash, address) => this.#codes.get(hash) ?? base.code(hash, address),
      storage: (address, slot) => {
        const written = this.#accounts.get(address);
        return written?.slots.get(slot) ?? (written?.isCleared ? NOTHING : base.storage(address, slot));
      },
      blockHash: (number) => base.blockHash(number),
    };
  }
}
