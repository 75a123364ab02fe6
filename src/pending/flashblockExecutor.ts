import type { BlockId } from "../core/heads.ts";
import type { StateChanges } from "../core/stateReader.ts";
import { type LeafCache, orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import type { Rules } from "../ethereum/rules.ts";
import type { Engine, ExecutionContext } from "../evm/engine.ts";
import { NotExecutableError } from "../evm/notExecutableError.ts";
import { complete } from "../evm/reads/complete.ts";
import { TransactionError } from "../evm/transactionError.ts";
import type { Decoded } from "./decodeTransaction.ts";
import { EngineQueue } from "./engineQueue.ts";
import {
  appendExecuted,
  ExecutedChain,
  type ExecutedChainOptions,
  type ExecutedFlashblock,
  earlierOf,
  findMismatch,
  layersOf,
} from "./executedChain.ts";
import { executeTransaction } from "./executeTransaction.ts";
import { ReadSets } from "./expectedKeys.ts";
import {
  type Executed,
  type Execution,
  type FlashblockJob,
  isFaultOfMessage,
  type TransactionOutcome,
  type UnverifiedReason,
} from "./flashblockJob.ts";
import {
  JobCancelledError,
  JobState,
  type JobStateOptions,
  type RoundLimits,
  UnreadableStateError,
} from "./jobState.ts";
import { JobSteps, overwritten, parentHashes } from "./jobSteps.ts";
import { InvalidRefund, refundsOf, settleRefund, withRefunds } from "./refunds.ts";

export interface FlashblockExecutorOptions extends ExecutedChainOptions, RoundLimits {
  readonly engine: (rules: Rules) => Engine;
}

/** The state on which one job executes: its ancestors and their layers, newest first. */
interface PreState {
  readonly ancestors: readonly ExecutedFlashblock[];
  readonly layers: readonly StateChanges[];
}

/** What one job has executed. */
interface BlockRun {
  readonly transactions: readonly Executed[];
  /** The earlier transactions of its block, with the refunds of this job. */
  readonly revised: readonly Executed[];
  readonly changes: StateChanges;
}

/** The result of one job's execution. */
interface Attempt extends Pick<Execution, "outcomes" | "revised" | "changes" | "unverified" | "cause"> {
  /** Present if the outcome is verified. */
  readonly executed?: ExecutedFlashblock;
}

const unverifiedAttempt = (unverified: UnverifiedReason, cause?: string): Attempt => ({
  outcomes: undefined,
  changes: undefined,
  unverified,
  cause,
});

/** Executes jobs one after another, each on the outcome of another. */
export class FlashblockExecutor {
  readonly #options: FlashblockExecutorOptions;
  readonly #engineQueue = new EngineQueue();
  readonly #jobOptions: JobStateOptions;
  /** The jobs that run or will run. While the running job waits for state, the others fetch theirs. */
  readonly #jobs = new Map<number, JobState>();
  #chain: ExecutedChain;
  /** The roots of a block are computed again for each of its messages. */
  readonly #leaves: LeafCache = new WeakMap();
  /** Everything that the running job and those below it have written, newest first. */
  #written: readonly StateChanges[] | undefined;

  constructor(options: FlashblockExecutorOptions, base: BlockId) {
    this.#options = options;
    this.#chain = new ExecutedChain(options, base);
    this.#jobOptions = {
      ...{ chain: () => this.#chain, engineQueue: this.#engineQueue, limits: options, readSets: new ReadSets() },
      written: () => this.#written ?? this.#chain.layers(),
    };
  }

  /** Announces a job. Its state can be fetched while earlier jobs wait for state. */
  expect(job: FlashblockJob, rules: Rules): void {
    const state = this.#stateOf(job, rules);
    if (this.#written) {
      state.runAhead();
    }
  }

  /**
   * Executes a job. With `isExecutable: false` it only decodes, because the block's rules are not known.
   * Throws JobCancelledError if nobody awaits the outcome any more.
   */
  async run(job: FlashblockJob, rules: Rules, isExecutable = true): Promise<Execution> {
    const state = this.#stateOf(job, rules);
    state.start();
    try {
      return await this.#run(state, isExecutable);
    } finally {
      this.#jobs.delete(job.id);
    }
  }

  /** The base is another block now. `through`: the job whose outcome is that block's state; `undefined` if there is none. */
  rebase(base: BlockId, through: number | undefined): void {
    const { isCancelled = () => through === undefined } = this.#options;
    if (through === undefined) {
      this.#chain = this.#chain.startAt(base);
      this.#rebaseJobs(isCancelled, false);
    } else {
      this.#rebaseJobs(isCancelled, this.#chain.seal(base, through));
    }
  }

  /** Discards cancelled jobs. Unless the chain keeps its values, the others start their search for state again. */
  #rebaseJobs(isCancelled: (job: FlashblockJob) => boolean, keepsValues: boolean): void {
    for (const [id, state] of this.#jobs) {
      if (isCancelled(state.steps.job)) {
        this.#jobs.delete(id);
      } else if (!keepsValues) {
        // Its rounds ahead end.
        state.start();
        this.#jobs.set(id, new JobState(this.#jobOptions, state.steps));
      }
    }
  }

  #stateOf(job: FlashblockJob, rules: Rules): JobState {
    const known = this.#jobs.get(job.id);
    const state = known ?? new JobState(this.#jobOptions, new JobSteps(job, this.#options.engine(rules)));
    this.#jobs.set(job.id, state);
    return state;
  }

  async #run(state: JobState, isExecutable: boolean): Promise<Execution> {
    const { job, decoded } = state.steps;
    const ancestors = this.#chain.ancestors(job.before);
    const layers = layersOf(ancestors);
    const isKnown = layers !== undefined && isExecutable;
    const unread =
      decoded.find((each) => isFaultOfMessage(each.unverified)) ??
      decoded.find((each) => each.unverified !== undefined);
    const unverified = unread?.unverified ?? (isKnown ? undefined : "unexecutable");
    const cause = unread?.cause ?? (isExecutable ? undefined : "the rules of this block are not known");
    const { executed = appendExecuted(job, ancestors[0], rawsOf(decoded), { transactions: [] }), ...outcome } =
      layers && !unverified
        ? await this.#attempt(state, { ancestors, layers })
        : unverifiedAttempt(unverified ?? "unexecutable", cause);
    this.#chain.add(executed);
    return {
      transactions: decoded.map(({ identity }) => identity),
      transactionsRoot: orderedTrieRoot(executed.raws, this.#leaves),
      ...outcome,
    };
  }

  async #attempt(state: JobState, preState: PreState): Promise<Attempt> {
    const { job, decoded } = state.steps;
    try {
      const { transactions, revised, changes } = await this.#execute(state, preState);
      const executed = appendExecuted(job, preState.ancestors[0], rawsOf(decoded), { transactions, revised });
      const unverified = findMismatch(job, executed, this.#leaves);
      if (unverified) {
        return unverifiedAttempt(unverified);
      }
      const isRevised = job.index > 0 && revised !== preState.ancestors[0]?.transactions;
      return {
        executed: { ...executed, layer: changes },
        outcomes: transactions.map(outcomeOf),
        revised: isRevised ? revised.map(outcomeOf) : undefined,
        changes,
        unverified,
      };
    } catch (error) {
      if (error instanceof JobCancelledError) {
        throw error;
      }
      const cause = error instanceof Error ? error.message : String(error);
      return unverifiedAttempt(unverifiedReasonOf(error), cause);
    }
  }

  async #execute(jobState: JobState, { ancestors, layers }: PreState): Promise<BlockRun> {
    const { job } = jobState.steps;
    const earlier = earlierOf(job, ancestors[0])?.transactions ?? [];
    const refunds = refundsOf(job, earlier.length + job.transactions.length);
    const revised = withRefunds(earlier, refunds);
    if (job.index === 0) {
      this.#chain.enter(overwritten(job.environment));
    }
    const gasUsed = revised.at(-1)?.receipt.cumulativeGasUsed ?? 0n;
    const run = jobState.steps.run<Executed>(
      parentHashes([job, ...ancestors]),
      (context, transaction, before) =>
        executeTransaction(context, transaction, before.at(-1)?.receipt.cumulativeGasUsed ?? gasUsed, {
          refund: refunds.get(earlier.length + before.length),
        }),
      revised === earlier ? undefined : (context) => settleRevised(context, earlier, revised),
    );
    try {
      const { result, state } = await complete(run, {
        readerOf: (missing) => this.#chain.reader(layers, missing),
        turn: this.#engineQueue.urgent,
        fetch: async (missing, { results, state }) => {
          this.#written = [state.changes(), ...layers];
          for (const each of this.#jobs.values()) {
            each.runAhead();
          }
          await jobState.fetch(missing, results);
        },
      });
      return { transactions: result, revised, changes: state.changes() };
    } finally {
      this.#written = undefined;
    }
  }
}

const outcomeOf = ({ receipt, refund }: Executed): TransactionOutcome => ({ receipt, refund });

/** Settles the refunds that this message has changed. */
const settleRevised = (context: ExecutionContext, earlier: readonly Executed[], revised: readonly Executed[]): void => {
  for (const [index, { payer, gasUsed, refund: from }] of earlier.entries()) {
    const to = revised[index]?.refund ?? 0n;
    if (to !== from) {
      settleRefund(context, { payer, gasUsed, from, to });
    }
  }
};

const rawsOf = (decoded: readonly Decoded[]): readonly Uint8Array[] => decoded.map(({ raw }) => raw);

/** Returns why an error of an execution leaves a message without verified state. */
const unverifiedReasonOf = (error: unknown): UnverifiedReason => {
  if (error instanceof NotExecutableError) {
    return "unexecutable";
  }
  if (error instanceof UnreadableStateError) {
    return error.reason;
  }
  return error instanceof TransactionError || error instanceof InvalidRefund ? "rejected" : "failed";
};
