import { setTimeout as wait } from "node:timers/promises";
import type { StateKeys } from "../core/stateReader.ts";
import type { Engine } from "../evm/engine.ts";
import type { BaseState, Fetched } from "./baseState.ts";
import { blockOf, layered } from "./blockState.ts";
import type { Prepared } from "./executeTransactions.ts";
import type { UnverifiedReason, Work } from "./execution.ts";
import type { ReadSets } from "./readSets.ts";
import { createSpeculation, type Speculation } from "./speculation.ts";
import { standardKeys } from "./standardKeys.ts";
import { createStateKeySet } from "./stateKeySet.ts";
import type { Layer } from "./stateLayers.ts";
import type { Turns } from "./turns.ts";

/** Values that one message may fetch: a cold slot costs 2,100 gas, so that a block of 100M gas reads fewer. */
const MAX_FETCHED = 50_000;
/** For one message. */
const TIMEOUT_MS = 30_000;
/** From then on only what runs asked for is fetched. */
const MAX_PREDICTED = 2_000;
const NO_KEYS: StateKeys = { accounts: [], slots: [], blockHashes: [] };
/** Rounds one after another that found nothing to fetch: another message may have fetched it. */
const MAX_IDLE_ROUNDS = 8;
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 400;

/** The state that a message reads could not be fetched. */
export class Unreadable extends Error {
  override readonly name = "Unreadable";
  readonly what: UnverifiedReason;
  constructor(what: UnverifiedReason, message: string) {
    super(message);
    this.what = what;
  }
}

/** Nobody awaits the outcome any more. */
export class VoidWork extends Error {
  override readonly name = "VoidWork";
}

export interface StateRoundsOptions {
  readonly base: BaseState;
  readonly work: Work;
  readonly engine: Engine;
  readonly turns: Turns;
  readonly readSets: ReadSets;
  readonly transactions: readonly Prepared[];
  /** What is known to be written below the transactions, newest first. */
  readonly written: () => readonly Layer[];
  readonly onRetry: (error: Error) => void;
  readonly isVoid: () => boolean;
  /** On the clock of `performance`. */
  readonly deadlineMs: () => number | undefined;
}

/** Fetches the state that one message's transactions read, in rounds that all of them share. */
export class StateRounds {
  readonly #options: StateRoundsOptions;
  #speculation: Speculation;
  #isTaken = false;
  #isAhead = false;
  /** The round that is on its way. */
  #round: Promise<unknown> | undefined;
  #startedMs: number | undefined;
  #fetched = 0;
  #idleRounds = 0;
  #predicted = NO_KEYS;

  constructor(options: StateRoundsOptions) {
    this.#options = options;
    this.#speculation = this.#speculate();
  }

  #speculate(): Speculation {
    const { base, work, engine, turns, readSets, transactions, written } = this.#options;
    const { environment } = work;
    const parent = new Map([[environment.number - 1n, environment.parentHash]]);
    return createSpeculation({
      engine,
      turns,
      readSets,
      transactions,
      place: (missing, guesses) => {
        const reader = layered(base.known.reader(missing, guesses), written());
        return { reader, block: blockOf(environment, parent, reader) };
      },
    });
  }

  /** The known values are gone: what was found out holds no longer. */
  restart(): void {
    this.#speculation = this.#speculate();
  }

  /** Fetches what the transactions will read, until they run or nothing is missing. */
  runAhead(): void {
    if (this.#isAhead || this.#isTaken) return;
    this.#isAhead = true;
    void this.#loopAhead();
  }

  async #loopAhead(): Promise<void> {
    try {
      while (!this.#isTaken && !this.#options.isVoid()) {
        const round = this.#next(undefined, 0);
        this.#round = round;
        if ((await round).asked === 0) break;
      }
    } catch {
      // It is tried again when the transactions run.
    } finally {
      this.#round = undefined;
      this.#isAhead = false;
    }
  }

  /** Returns after one more round. `from`: the transaction that lacks those keys. Throws VoidWork or Unreadable. */
  async bring(lacking: StateKeys, from: number): Promise<void> {
    const { isVoid, deadlineMs, onRetry, transactions, readSets } = this.#options;
    this.#isTaken = true;
    this.#startedMs ??= performance.now();
    const ahead = this.#round;
    if (ahead) {
      await ahead.catch(() => undefined);
      return;
    }
    this.#speculation.reopen(from);
    const prepared = transactions[from];
    if (prepared) readSets.learn(prepared.transaction, lacking);
    let pauseMs = FIRST_PAUSE_MS;
    let last = "";
    for (;;) {
      if (isVoid()) throw new VoidWork();
      const untilMs = Math.min(this.#startedMs + TIMEOUT_MS, deadlineMs() ?? Number.POSITIVE_INFINITY);
      if (performance.now() > untilMs) throw new Unreadable("unreadable", `its state was not fetched in time${last}`);
      try {
        const { asked } = await this.#next(lacking, from);
        this.#idleRounds = asked === 0 ? this.#idleRounds + 1 : 0;
        if (this.#idleRounds > MAX_IDLE_ROUNDS) throw new Unreadable("failed", "fetched state is still missing");
        // One more round costs less than a run that will stop again.
        if (asked === 0 || !this.#speculation.isOpen(from)) return;
      } catch (error) {
        if (error instanceof Unreadable) throw error;
        if (isVoid()) throw new VoidWork();
        last = `: ${error instanceof Error ? error.message : String(error)}`;
        onRetry(error instanceof Error ? error : new Error(String(error)));
        await wait(pauseMs);
        pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS);
      }
    }
  }

  async #next(lacking: StateKeys | undefined, from: number): Promise<Fetched> {
    const { work, engine } = this.#options;
    const { keys, wish, wished } = await this.#speculation.next(from, lacking !== undefined);
    const wanted = createStateKeySet();
    if (this.#fetched === 0) wanted.add(standardKeys(work, engine.rules));
    wanted.add(keys);
    if (wanted.size > 0) wanted.add(this.#predicted);
    if (lacking) wanted.add(lacking);
    const fetched = await this.#options.base.fetch(wanted.keys(), wish);
    if (fetched.foreseen > 0) this.#speculation.close(wished);
    const helps = fetched.foreseen === 0 && this.#fetched < MAX_PREDICTED;
    this.#predicted = helps ? fetched.predicted : NO_KEYS;
    this.#fetched += fetched.asked + fetched.foreseen;
    if (this.#fetched > MAX_FETCHED) {
      throw new Unreadable("tooMuchState", `it reads more than ${MAX_FETCHED} values that have to be fetched`);
    }
    return fetched;
  }
}
