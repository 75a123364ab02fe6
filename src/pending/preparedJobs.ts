import { parseData } from "../ethereum/hex.ts";
import type { Rules } from "../ethereum/rules.ts";
import type { Engine } from "../evm/engine.ts";
import type { BaseState } from "./baseState.ts";
import { type Decoded, decodeTransaction } from "./decodeTransaction.ts";
import type { Prepared } from "./executeTransactions.ts";
import type { Work } from "./execution.ts";
import { createReadSets } from "./readSets.ts";
import type { Layer } from "./stateLayers.ts";
import { StateRounds } from "./stateRounds.ts";
import type { Turns } from "./turns.ts";

/** A job with its decoded transactions and the rounds that fetch its state. */
export interface PreparedJob {
  readonly work: Work;
  readonly engine: Engine;
  readonly decoded: readonly Decoded[];
  /** The transactions of `decoded` that can be executed. */
  readonly transactions: readonly Prepared[];
  readonly rounds: StateRounds;
}

export interface PreparedJobsOptions {
  readonly base: BaseState;
  readonly engine: (rules: Rules) => Engine;
  readonly turns: Turns;
  /** Returns the layers that are known to be below the next job, newest first. */
  readonly written: () => readonly Layer[];
  readonly onRetry: (work: Work, error: Error) => void;
  readonly isVoid: (work: Work) => boolean;
  readonly deadlineMs: (work: Work) => number | undefined;
}

/** The jobs that run or will run. While the running job waits for state, the others fetch theirs. */
export class PreparedJobs {
  readonly #options: PreparedJobsOptions;
  readonly #readSets = createReadSets();
  readonly #jobs = new Map<number, PreparedJob>();
  /** Jobs that have not started. */
  readonly #expected = new Map<number, { readonly work: Work; readonly rules: Rules }>();
  #waiting = 0;

  constructor(options: PreparedJobsOptions) {
    this.#options = options;
  }

  /** Announces a job that will start later. */
  expect(work: Work, rules: Rules): void {
    this.#expected.set(work.id, { work, rules });
    if (this.#waiting > 0) {
      this.#runAhead(work, rules);
    }
  }

  /** Returns the prepared job. Throws if a transaction is not hexadecimal. */
  prepare(work: Work, rules: Rules): PreparedJob {
    const prepared = this.#jobs.get(work.id);
    if (prepared) {
      return prepared;
    }
    const { base, turns, written, onRetry, isVoid, deadlineMs } = this.#options;
    const engine = this.#options.engine(rules);
    const decoded = work.transactions.map((raw, at) =>
      decodeTransaction(parseData(raw), rules.chainId, work.senders?.[at]),
    );
    const transactions = decoded.flatMap((each) => each.prepared ?? []);
    const rounds = new StateRounds({
      base,
      work,
      engine,
      turns,
      readSets: this.#readSets,
      transactions,
      written,
      onRetry: (error) => onRetry(work, error),
      isVoid: () => isVoid(work),
      deadlineMs: () => deadlineMs(work),
    });
    const job = { work, engine, decoded, transactions, rounds };
    this.#jobs.set(work.id, job);
    return job;
  }

  /** The job starts. */
  start({ id }: Work): void {
    this.#expected.delete(id);
  }

  /** The job has ended. */
  end({ id }: Work): void {
    this.#jobs.delete(id);
  }

  /** Waits for state of the running job. During the wait, the expected jobs determine the state that they will read. */
  async wait(rounds: Promise<void>): Promise<void> {
    this.#waiting++;
    for (const { work, rules } of this.#expected.values()) {
      this.#runAhead(work, rules);
    }
    try {
      await rounds;
    } finally {
      this.#waiting--;
    }
  }

  /** The base block changed: discards void jobs. Unless `keepsState`, the others start their search for state again. */
  rebase(isVoid: (work: Work) => boolean, keepsState: boolean): void {
    for (const [id, { work }] of this.#expected) {
      if (isVoid(work)) {
        this.#expected.delete(id);
      }
    }
    for (const [id, { work, rounds }] of this.#jobs) {
      if (isVoid(work)) {
        this.#jobs.delete(id);
      } else if (!keepsState) {
        rounds.restart();
      }
    }
  }

  #runAhead(work: Work, rules: Rules): void {
    try {
      this.prepare(work, rules).rounds.runAhead();
    } catch {
      // The job reports its error when it runs.
    }
  }
}
