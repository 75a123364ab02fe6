import { parseData } from "../ethereum/hex.ts";
import type { Rules } from "../ethereum/rules.ts";
import type { Engine } from "../evm/engine.ts";
import { recoverSender } from "../evm/senders/recoverAddress.ts";
import { type Decoded, decodeTransaction } from "./decodeTransaction.ts";
import type { FlashblockJob } from "./execution.ts";
import { type DecodedJob, ReadSets } from "./speculation.ts";
import { StateRounds, type StateRoundsOptions } from "./stateRounds.ts";

/** A job with the rounds that fetch its state. */
export interface PreparedJob extends DecodedJob {
  /** All its transactions. */
  readonly decoded: readonly Decoded[];
  readonly rounds: StateRounds;
}

export interface PreparedJobsOptions extends Omit<StateRoundsOptions, "readSets"> {
  readonly engine: (rules: Rules) => Engine;
}

/** The jobs that run or will run. While the running job waits for state, the others fetch theirs. */
export class PreparedJobs {
  readonly #options: PreparedJobsOptions & StateRoundsOptions;
  readonly #jobs = new Map<number, PreparedJob>();
  /** Jobs that have not started. */
  readonly #expected = new Map<number, { readonly job: FlashblockJob; readonly rules: Rules }>();
  #waiting = 0;

  constructor(options: PreparedJobsOptions) {
    this.#options = { ...options, readSets: new ReadSets() };
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
    const engine = this.#options.engine(rules);
    const decoded = job.transactions.map((raw, at) =>
      decodeTransaction(
        parseData(raw),
        rules.chainId,
        (transaction) => job.senders?.[at] ?? recoverSender(transaction),
      ),
    );
    const runnable = { job, engine, transactions: decoded.flatMap((each) => each.prepared ?? []) };
    const created = { ...runnable, decoded, rounds: new StateRounds(this.#options, runnable) };
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
