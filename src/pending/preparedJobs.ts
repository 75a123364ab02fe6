import type { StateChanges } from "../core/stateReader.ts";
import { parseData } from "../ethereum/hex.ts";
import type { Rules } from "../ethereum/rules.ts";
import type { Engine } from "../evm/engine.ts";
import { recoverSender } from "../evm/senders/recoverAddress.ts";
import type { BaseState } from "./baseState.ts";
import { type Decoded, decodeTransaction } from "./decodeTransaction.ts";
import type { EngineTurns } from "./engineQueue.ts";
import type { Prepared } from "./executeTransactions.ts";
import type { FlashblockJob } from "./execution.ts";
import { ReadSets } from "./speculation.ts";
import { StateRounds } from "./stateRounds.ts";

/** A job with its decoded transactions and the rounds that fetch its state. */
export interface PreparedJob {
  readonly job: FlashblockJob;
  readonly engine: Engine;
  readonly decoded: readonly Decoded[];
  /** The transactions of `decoded` that can be executed. */
  readonly transactions: readonly Prepared[];
  readonly rounds: StateRounds;
}

export interface PreparedJobsOptions {
  readonly base: BaseState;
  readonly engine: (rules: Rules) => Engine;
  readonly engineQueue: EngineTurns;
  /** Returns the layers that are known to be below the next job, newest first. */
  readonly written: () => readonly StateChanges[];
  readonly onRetry: (job: FlashblockJob, error: Error) => void;
  readonly isCancelled: (job: FlashblockJob) => boolean;
  readonly deadlineMs: (job: FlashblockJob) => number | undefined;
}

/** The jobs that run or will run. While the running job waits for state, the others fetch theirs. */
export class PreparedJobs {
  readonly #options: PreparedJobsOptions;
  readonly #readSets = new ReadSets();
  readonly #jobs = new Map<number, PreparedJob>();
  /** Jobs that have not started. */
  readonly #expected = new Map<number, { readonly job: FlashblockJob; readonly rules: Rules }>();
  #waiting = 0;

  constructor(options: PreparedJobsOptions) {
    this.#options = options;
  }

  /** Announces a job that will start later. */
  expect(job: FlashblockJob, rules: Rules): void {
    this.#expected.set(job.id, { job, rules });
    if (this.#waiting > 0) {
      this.#runAhead(job, rules);
    }
  }

  /** Returns the prepared job. Throws if a transaction is not hexadecimal. */
  prepare(job: FlashblockJob, rules: Rules): PreparedJob {
    const prepared = this.#jobs.get(job.id);
    if (prepared) {
      return prepared;
    }
    const { base, engineQueue, written, onRetry, isCancelled, deadlineMs } = this.#options;
    const engine = this.#options.engine(rules);
    const decoded = job.transactions.map((raw, at) =>
      decodeTransaction(
        parseData(raw),
        rules.chainId,
        (transaction) => job.senders?.[at] ?? recoverSender(transaction),
      ),
    );
    const transactions = decoded.flatMap((each) => each.prepared ?? []);
    const rounds = new StateRounds({
      base,
      job,
      engine,
      engineQueue,
      readSets: this.#readSets,
      transactions,
      written,
      onRetry: (error) => onRetry(job, error),
      isCancelled: () => isCancelled(job),
      deadlineMs: () => deadlineMs(job),
    });
    const created = { job, engine, decoded, transactions, rounds };
    this.#jobs.set(job.id, created);
    return created;
  }

  /** The job starts. */
  start({ id }: FlashblockJob): void {
    this.#expected.delete(id);
  }

  /** The job has ended. */
  end({ id }: FlashblockJob): void {
    this.#jobs.delete(id);
  }

  /** Waits for state of the running job. During the wait, the expected jobs determine the state that they will read. */
  async wait(rounds: Promise<void>): Promise<void> {
    this.#waiting++;
    for (const { job, rules } of this.#expected.values()) {
      this.#runAhead(job, rules);
    }
    try {
      await rounds;
    } finally {
      this.#waiting--;
    }
  }

  /** The base block changed: discards cancelled jobs. Unless `keepsState`, the others start their search for state again. */
  rebase(isCancelled: (job: FlashblockJob) => boolean, keepsState: boolean): void {
    for (const [id, { job }] of this.#expected) {
      if (isCancelled(job)) {
        this.#expected.delete(id);
      }
    }
    for (const [id, { job, rounds }] of this.#jobs) {
      if (isCancelled(job)) {
        this.#jobs.delete(id);
      } else if (!keepsState) {
        rounds.restart();
      }
    }
  }

  #runAhead(job: FlashblockJob, rules: Rules): void {
    try {
      this.prepare(job, rules).rounds.runAhead();
    } catch {
      // The job reports its error when it runs.
    }
  }
}
