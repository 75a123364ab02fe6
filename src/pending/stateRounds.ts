import { setTimeout as wait } from "node:timers/promises";
import type { StateKeys } from "../core/stateReader.ts";
import { type Address, formatWord, type Hash } from "../ethereum/hex.ts";
import { BASE_FEE_VAULT, L1_BLOCK, L1_FEE_VAULT, OPERATOR_FEE_VAULT } from "../ethereum/opFees.ts";
import type { Rules } from "../ethereum/rules.ts";
import { StateKeySet } from "../evm/reads/stateKeySet.ts";
import { BEACON_ROOTS, BLOCK_HASHES, SYSTEM } from "../evm/systemCalls.ts";
import type { StateFetchResult } from "./executedChain.ts";
import type { FlashblockJob, UnverifiedReason } from "./execution.ts";
import { type DecodedJob, Speculation, type SpeculationOptions } from "./speculation.ts";

/** Values that one message may fetch. A cold slot costs 2,100 gas, so a block of 100M gas reads fewer. */
const MAX_FETCHED = 50_000;
/** Time limit of one message. */
const TIMEOUT_MS = 30_000;
/** After this number of values, predicted keys are no longer fetched. */
const MAX_PREDICTED = 2_000;
const NO_KEYS: StateKeys = { accounts: [], slots: [], blockHashes: [] };
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
}

export interface StateRoundsOptions extends SpeculationOptions {
  readonly limits: RoundLimits;
}

/** Fetches the state that one message's transactions read, in rounds that all of them share. */
export class StateRounds {
  readonly #options: StateRoundsOptions;
  readonly #decoded: DecodedJob;
  #speculation: Speculation;
  /** The transactions run. Before that, rounds may run ahead. */
  #hasStarted = false;
  /** The newest round ahead, while rounds run ahead. */
  #roundAhead: Promise<StateFetchResult> | undefined;
  #startedMs: number | undefined;
  #fetched = 0;
  #idleRounds = 0;
  #predicted = NO_KEYS;

  constructor(options: StateRoundsOptions, decoded: DecodedJob) {
    this.#options = options;
    this.#decoded = decoded;
    this.#speculation = new Speculation(options, decoded);
  }

  /** The cached values were discarded, so the search for missing state starts again. */
  restart(): void {
    this.#speculation = new Speculation(this.#options, this.#decoded);
  }

  /** Fetches the state that the transactions will read, until they run or nothing is missing. */
  runAhead(): void {
    if (this.#roundAhead === undefined && !this.#hasStarted) {
      void this.#loopAhead();
    }
  }

  async #loopAhead(): Promise<void> {
    try {
      while (!this.#hasStarted && !this.#isCancelled()) {
        const round = this.#next(undefined, 0);
        this.#roundAhead = round;
        if ((await round).requested === 0) {
          break;
        }
      }
    } catch {
      // The read is retried when the transactions run.
    } finally {
      this.#roundAhead = undefined;
    }
  }

  /** Completes one more round. `from`: the transaction that lacks those keys. Throws JobCancelledError or UnreadableStateError. */
  async fetch(missing: StateKeys, from: number): Promise<void> {
    this.#hasStarted = true;
    this.#startedMs ??= performance.now();
    const ahead = this.#roundAhead;
    if (ahead) {
      await ahead.catch(() => undefined);
      return;
    }
    this.#speculation.reopen(from);
    const prepared = this.#decoded.transactions[from];
    if (prepared) {
      this.#options.readSets.learn(prepared.transaction, missing);
    }
    await this.#fetchWithRetries(missing, from, this.#startedMs);
  }

  async #fetchWithRetries(missing: StateKeys, from: number, startedMs: number): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS;
    let lastError = "";
    for (;;) {
      this.#checkLimits(startedMs, lastError);
      try {
        if (await this.#fetchOnce(missing, from)) {
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
    return this.#options.limits.isCancelled?.(this.#decoded.job) ?? false;
  }

  #checkLimits(startedMs: number, lastError: string): void {
    if (this.#isCancelled()) {
      throw new JobCancelledError();
    }
    const deadlineMs = this.#options.limits.deadlineMs?.(this.#decoded.job) ?? Number.POSITIVE_INFINITY;
    const untilMs = Math.min(startedMs + TIMEOUT_MS, deadlineMs);
    if (performance.now() <= untilMs) {
      return;
    }
    throw new UnreadableStateError("unreadable", `its state was not fetched in time${lastError}`);
  }

  /** Returns whether the transaction can run. Another round costs less than a run that will stop again. */
  async #fetchOnce(missing: StateKeys, from: number): Promise<boolean> {
    const { requested } = await this.#next(missing, from);
    this.#idleRounds = requested === 0 ? this.#idleRounds + 1 : 0;
    if (this.#idleRounds > MAX_IDLE_ROUNDS) {
      throw new UnreadableStateError("failed", "fetched state is still missing");
    }
    return requested === 0 || !this.#speculation.isOpen(from);
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
    this.#options.limits.onRetry?.(this.#decoded.job, cause);
    return cause;
  }

  async #next(missing: StateKeys | undefined, from: number): Promise<StateFetchResult> {
    const { job, engine } = this.#decoded;
    const { keys, hint, hinted } = await this.#speculation.next(from, missing !== undefined);
    const wanted = new StateKeySet();
    if (this.#fetched === 0) {
      wanted.add(alwaysReadKeys(job, engine.rules));
    }
    wanted.add(keys);
    if (wanted.size > 0) {
      wanted.add(this.#predicted);
    }
    if (missing) {
      wanted.add(missing);
    }
    const fetched = await this.#options.chain().fetch(wanted.keys(), hint);
    if (fetched.traced > 0) {
      this.#speculation.close(hinted);
    }
    const usesPredictions = fetched.traced === 0 && this.#fetched < MAX_PREDICTED;
    this.#predicted = usesPredictions ? fetched.predicted : NO_KEYS;
    this.#fetched += fetched.requested + fetched.traced;
    if (this.#fetched > MAX_FETCHED) {
      throw new UnreadableStateError(
        "tooMuchState",
        `it reads more than ${MAX_FETCHED} values that have to be fetched`,
      );
    }
    return fetched;
  }
}

const OP_ACCOUNTS: readonly Address[] = [L1_BLOCK, BASE_FEE_VAULT, L1_FEE_VAULT, OPERATOR_FEE_VAULT];
/** Slots of the L1Block contract (Jovian). */
const L1_BLOCK_SLOTS = 9;

/**
 * Returns the keys that every flashblock reads: accounts of system calls and fees, L1 attributes, and the feed's access list.
 * They are fetched before its execution.
 */
const alwaysReadKeys = ({ environment, index, accessList }: FlashblockJob, rules: Rules): StateKeys => ({
  accounts: [
    environment.feeRecipient,
    ...(index === 0 ? [SYSTEM, BEACON_ROOTS, BLOCK_HASHES] : []),
    ...(rules.op === undefined ? [] : OP_ACCOUNTS),
    ...accessList.map(({ address }) => address),
  ],
  slots: [
    ...(rules.op === undefined ? [] : L1_SLOTS),
    ...accessList.flatMap(({ address, slots }) => slots.map((slot) => [address, slot] as const)),
  ],
  blockHashes: [],
});

const L1_SLOTS = Array.from({ length: L1_BLOCK_SLOTS }, (_, slot): readonly [Address, Hash] => [
  L1_BLOCK,
  formatWord(slot),
]);
