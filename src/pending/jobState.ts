import { setTimeout as wait } from "node:timers/promises";
import { NO_KEYS, type StateChanges, type StateKeys } from "../core/stateReader.ts";
import type { ExecutionContext } from "../evm/engine.ts";
import { alternatingGuesses } from "../evm/reads/guesses.ts";
import { type FoundKeys, KeySearch } from "../evm/reads/keySearch.ts";
import { StateKeySet } from "../evm/reads/stateKeySet.ts";
import type { EngineQueue } from "./engineQueue.ts";
import type { ExecutedChain } from "./executedChain.ts";
import { executeTransaction, type Prepared } from "./executeTransaction.ts";
import { alwaysReadKeys, lacksCode, plainCallOf, type ReadSets } from "./expectedKeys.ts";
import type { FlashblockJob, UnverifiedReason } from "./flashblockJob.ts";
import { type JobSteps, parentHashes } from "./jobSteps.ts";

/** Values that guesses may fetch for one message. */
const MAX_GUESSED = 10_000;
/** Default of RoundLimits.maxSearchMs. */
const MAX_SEARCH_MS = 60;
/** A transaction on guesses pays for gas, but its nonce and its sender's code may belong to a later state. */
const CHECKS = { nonce: false, sender: false, freeGas: false };
/** Calls that one request asks a node to trace. */
const MAX_HINTS = 16;
/** Values that one message may fetch. A cold slot costs 2,100 gas, so a block of 100M gas reads fewer. */
const MAX_FETCHED = 50_000;
/** Time limit of one message. */
const TIMEOUT_MS = 30_000;
/** After this number of values, predicted keys are no longer fetched. */
const MAX_PREDICTED = 2_000;
/** Successive rounds without a value to fetch. Another message may have fetched it. */
const MAX_IDLE_ROUNDS = 8;
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 400;

/** The state of a message could not be fetched. */
export class UnreadableStateError extends Error {
  override readonly name = "UnreadableStateError";
  readonly reason: UnverifiedReason;
  constructor(reason: UnverifiedReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Nobody awaits the outcome any more. */
export class JobCancelledError extends Error {
  override readonly name = "JobCancelledError";
}

/** The limits of the rounds of each job. */
export interface RoundLimits {
  /** Called when the state of a job could not be read. The read is retried. */
  readonly onRetry?: (job: FlashblockJob, error: Error) => void;
  /** Whether nobody awaits the job's outcome any more. */
  readonly isCancelled?: (job: FlashblockJob) => boolean;
  /** Returns when the job must end, on the clock of `performance`. Its block is sealed, and the next one waits for it. */
  readonly deadlineMs?: (job: FlashblockJob) => number | undefined;
  /** Time limit of a search on guesses. Then the round fetches the values that are missing so far. Default 60. */
  readonly maxSearchMs?: number | undefined;
}

/** What all jobs share. */
export interface JobStateOptions {
  readonly chain: () => ExecutedChain;
  readonly engineQueue: EngineQueue;
  readonly readSets: ReadSets;
  readonly limits: RoundLimits;
  /** Returns the layers that are known to be below the next transactions, newest first. */
  readonly written: () => readonly StateChanges[];
}

/** The state that the steps of one job read. It is fetched in rounds that all of them share. */
export class JobState {
  readonly steps: JobSteps;
  readonly #options: JobStateOptions;
  readonly #search: KeySearch;
  /** Undefined before the steps run. Rounds may run ahead. */
  #startedMs: number | undefined;
  /** The newest round ahead, while rounds run ahead. */
  #roundAhead: Promise<number> | undefined;
  /** Steps that were part of a hint. */
  readonly #hinted = new Set<number>();
  #guessed = 0;
  #fetched = 0;
  #idleRounds = 0;
  #predicted = NO_KEYS;

  constructor(options: JobStateOptions, steps: JobSteps) {
    const { chain, written, limits } = options;
    this.#options = options;
    this.steps = steps;
    this.#search = new KeySearch({
      run: steps.run(parentHashes([steps.job]), guessTransaction),
      readerOf: (missing, guesses) => chain().reader(written(), missing, guesses),
      guessesOf: alternatingGuesses,
      maxKeys: MAX_GUESSED,
      maxMs: limits.maxSearchMs ?? MAX_SEARCH_MS,
    });
  }

  /** Fetches the state that the transactions will read, until they run or nothing is missing. */
  runAhead(): void {
    if (this.#roundAhead === undefined && this.#startedMs === undefined) {
      void this.#loopAhead();
    }
  }

  async #loopAhead(): Promise<void> {
    try {
      while (this.#startedMs === undefined && !this.#isCancelled()) {
        this.#roundAhead = this.#round();
        if ((await this.#roundAhead) === 0) {
          break;
        }
      }
    } catch {
      // The read is retried when the transactions run.
    } finally {
      this.#roundAhead = undefined;
    }
  }

  /** The run starts. No further round runs ahead. */
  start(): void {
    this.#startedMs = performance.now();
  }

  /**
   * Fetches `missing`, and what the steps after those that have `results` lack on guesses. Throws JobCancelledError or
   * UnreadableStateError.
   */
  async fetch(missing: StateKeys, results: readonly unknown[]): Promise<void> {
    if (this.#roundAhead) {
      await this.#roundAhead.catch(() => undefined);
      return;
    }
    const transaction = this.steps.transactionAt(results.length);
    if (transaction) {
      this.#options.readSets.learn(transaction, missing);
    }
    let pauseMs = FIRST_PAUSE_MS;
    let lastError = "";
    for (;;) {
      this.#checkLimits(lastError);
      try {
        const requested = await this.#round(missing, results);
        this.#countIdle(requested);
        // Another round costs less than a run that will stop again.
        if (requested === 0 || !this.#search.isOpen(results.length)) {
          return;
        }
      } catch (error) {
        lastError = `: ${this.#reportRetry(error).message}`;
        await wait(pauseMs);
        pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS);
      }
    }
  }

  #isCancelled(): boolean {
    return this.#options.limits.isCancelled?.(this.steps.job) ?? false;
  }

  #checkLimits(lastError: string): void {
    if (this.#isCancelled()) {
      throw new JobCancelledError();
    }
    const untilMs = Math.min(
      (this.#startedMs ?? 0) + TIMEOUT_MS,
      this.#options.limits.deadlineMs?.(this.steps.job) ?? Number.POSITIVE_INFINITY,
    );
    if (performance.now() > untilMs) {
      throw new UnreadableStateError("unreadable", `its state was not fetched in time${lastError}`);
    }
  }

  #countIdle(requested: number): void {
    this.#idleRounds = requested === 0 ? this.#idleRounds + 1 : 0;
    if (this.#idleRounds > MAX_IDLE_ROUNDS) {
      throw new UnreadableStateError("failed", "fetched state is still missing");
    }
  }

  /** Reports an error that a retry may resolve. Throws other errors. */
  #reportRetry(error: unknown): Error {
    if (error instanceof UnreadableStateError) {
      throw error;
    }
    if (this.#isCancelled()) {
      throw new JobCancelledError();
    }
    const cause = error instanceof Error ? error : new Error(String(error));
    this.#options.limits.onRetry?.(this.steps.job, cause);
    return cause;
  }

  /** Returns the number of requested values. Without `missing` the round runs ahead. */
  async #round(missing?: StateKeys, results?: readonly unknown[]): Promise<number> {
    const { chain, engineQueue } = this.#options;
    const lacking = await this.#findLacking(results, missing ? engineQueue.urgent : engineQueue.idle);
    const wanted = this.#wantedOf(lacking);
    if (missing) {
      wanted.add(missing);
    }
    const hinted = this.#hintedOf(lacking);
    const hint = hinted.map(({ transaction }) => plainCallOf(transaction));
    const { requested, traced, predicted } = await chain().fetch(wanted.keys(), hint);
    for (const { step } of traced > 0 ? hinted : []) {
      this.#search.close(step);
    }
    this.#predicted = traced === 0 && this.#fetched < MAX_PREDICTED ? predicted : NO_KEYS;
    this.#fetched += requested + traced;
    if (this.#fetched > MAX_FETCHED) {
      throw new UnreadableStateError(
        "tooMuchState",
        `it reads more than ${MAX_FETCHED} values that have to be fetched`,
      );
    }
    return requested;
  }

  /** Searches for transactions that lack state. */
  async #findLacking(
    results: readonly unknown[] | undefined,
    turn: EngineQueue["urgent"],
  ): Promise<readonly Lacking[]> {
    const found = this.#guessed > MAX_GUESSED ? [] : await this.#search.pass(results, undefined, turn);
    return found.flatMap((each) => {
      const transaction = this.steps.transactionAt(each.step);
      return transaction ? { ...each, transaction } : [];
    });
  }

  #wantedOf(lacking: readonly Lacking[]): StateKeySet {
    const { readSets } = this.#options;
    const wanted = new StateKeySet();
    for (const { transaction, keys } of lacking) {
      wanted.add(keys);
      readSets.learn(transaction, keys);
    }
    for (const keys of readSets.of(lacking.filter(({ count }) => count === 1).map(({ transaction }) => transaction))) {
      wanted.add(keys);
    }
    this.#guessed += wanted.size;
    if (this.#fetched === 0) {
      wanted.add(alwaysReadKeys(this.steps.job, this.steps.engine.rules));
    }
    if (wanted.size > 0) {
      wanted.add(this.#predicted);
    }
    return wanted;
  }

  /** A trace is worth its price if code is missing, or after more than one execution. Each transaction is traced once. */
  #hintedOf(lacking: readonly Lacking[]): readonly Lacking[] {
    const hinted = lacking
      .filter((each) => !this.#hinted.has(each.step) && (each.count > 1 || lacksCode(each.transaction, each.keys)))
      .slice(0, MAX_HINTS);
    for (const { step } of hinted) {
      this.#hinted.add(step);
    }
    return hinted;
  }
}

/** A transaction, and the keys that it lacks. */
interface Lacking extends FoundKeys {
  readonly transaction: Prepared;
}

/** A guess caused an error, or the transaction reports it when it executes. */
const guessTransaction = (context: ExecutionContext, transaction: Prepared): Promise<unknown> =>
  executeTransaction(context, transaction, 0n, { checks: CHECKS }).catch(() => undefined);
