import type { BlockId } from "../core/heads.ts";
import type { StateChanges } from "../core/stateReader.ts";
import { type LeafCache, orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import type { Rules } from "../ethereum/rules.ts";
import type { Engine } from "../evm/engine.ts";
import { NotExecutableError } from "../evm/notExecutableError.ts";
import { complete } from "../evm/reads/complete.ts";
import { TransactionError } from "../evm/transactionError.ts";
import { BaseState, type BaseStateOptions } from "./baseState.ts";
import { BlockRun } from "./blockRun.ts";
import { layered, overwritten, parentHashes } from "./blockState.ts";
import { EngineQueue, type EngineTurns } from "./engineQueue.ts";
import { appendExecuted, type ExecutedFlashblock, ExecutedJobs, findMismatch, layersOf } from "./executedJobs.ts";
import type { Execution, ExecutionOutcome, FlashblockJob, UnverifiedReason } from "./execution.ts";
import { type PreparedJob, PreparedJobs } from "./preparedJobs.ts";
import { JobCancelledError, type RoundLimits, UnreadableStateError } from "./stateRounds.ts";

export interface FlashblockExecutorOptions extends BaseStateOptions, RoundLimits {
  readonly engine: (rules: Rules) => Engine;
}

/** The state on which one job executes: its ancestors and their layers, newest first. */
interface PreState {
  readonly ancestors: readonly ExecutedFlashblock[];
  readonly layers: readonly StateChanges[];
}

/** The result of one job's execution. */
interface Attempt extends Pick<Execution, "outcome" | "unverified" | "cause"> {
  /** Present if the outcome is verified. */
  readonly executed?: ExecutedFlashblock;
}

/** The state and the jobs of a new executor. */
interface ExecutorStart {
  readonly base: BaseState;
  readonly executed: ExecutedJobs;
  readonly engineQueue: EngineTurns;
}

export const createFlashblockExecutor = (options: FlashblockExecutorOptions, base: BlockId): FlashblockExecutor =>
  new FlashblockExecutor(options, {
    base: new BaseState(options, base),
    executed: new ExecutedJobs(),
    engineQueue: new EngineQueue(),
  });

/** Executes jobs one after another, each on the outcome of another. It keeps the base's values from block to block. */
export class FlashblockExecutor {
  readonly #options: FlashblockExecutorOptions;
  readonly #base: BaseState;
  readonly #engineQueue: EngineTurns;
  readonly #executed: ExecutedJobs;
  readonly #jobs: PreparedJobs;
  /** The roots of a block are computed again for each of its messages. */
  readonly #leaves: LeafCache = new WeakMap();
  /** Everything that the running job and those below it have written, newest first. */
  #written: readonly StateChanges[] | undefined;

  constructor(options: FlashblockExecutorOptions, { base, executed, engineQueue }: ExecutorStart) {
    this.#options = options;
    this.#base = base;
    this.#executed = executed;
    this.#engineQueue = engineQueue;
    this.#jobs = new PreparedJobs({
      ...{ base, engine: options.engine, engineQueue, limits: options },
      written: () => this.#written ?? executed.layers(),
    });
  }

  /** Announces a job. Its state can be fetched while earlier jobs wait for state. */
  expect(job: FlashblockJob, rules: Rules): void {
    this.#jobs.expect(job, rules);
  }

  /**
   * Executes a job. With `isExecutable: false` it only decodes, because the block's rules are not known.
   * Throws JobCancelledError if nobody awaits the outcome any more.
   */
  async run(job: FlashblockJob, rules: Rules, isExecutable = true): Promise<Execution> {
    this.#jobs.start(job);
    try {
      return await this.#run(job, rules, isExecutable);
    } finally {
      this.#jobs.end(job);
    }
  }

  /**
   * Returns an executor of the same jobs on the same state, before a change of base that discards both here. It executes one
   * transaction at a time, while this one waits for state.
   */
  fork(deadlineMs: number): FlashblockExecutor {
    const { engine, fetch, codes, isNative } = this.#options;
    const { idle } = this.#engineQueue;
    return new FlashblockExecutor(
      { engine, fetch, codes, isNative, deadlineMs: () => deadlineMs },
      { base: this.#base.fork(), executed: this.#executed.fork(), engineQueue: { urgent: idle, idle } },
    );
  }

  /** Whether the state after this job is here. */
  hasState(job: number): boolean {
    return this.#executed.has(job);
  }

  /** The base is another block now. `through`: the job whose outcome is that block's state; `undefined` if there is none. */
  rebase(base: BlockId, through: number | undefined): void {
    const isExecuted = through !== undefined && this.#executed.has(through);
    const layers = isExecuted ? layersOf(this.#executed.ancestors(through)) : undefined;
    if (layers) {
      this.#base.advance(base, layers.toReversed());
    } else {
      this.#base.reset(base);
    }
    this.#jobs.rebase(this.#options.isCancelled ?? (() => through === undefined), layers !== undefined);
    this.#executed.rebase(through);
  }

  async #run(job: FlashblockJob, rules: Rules, isExecutable: boolean): Promise<Execution> {
    const ancestors = this.#executed.ancestors(job.before);
    const layers = layersOf(ancestors);
    const prepared = this.#jobs.prepare(job, rules);
    const isKnown = layers !== undefined && isExecutable && !job.hasPostExec;
    const unverified =
      prepared.decoded.find((each) => each.unverified)?.unverified ?? (isKnown ? undefined : "unexecutable");
    const attempt: Attempt =
      layers && !unverified
        ? await this.#attempt(prepared, { ancestors, layers })
        : { outcome: undefined, unverified, cause: isExecutable ? undefined : "the rules of this block are not known" };
    const executed = attempt.executed ?? appendExecuted(job, ancestors[0], rawsOf(prepared), []);
    this.#executed.add(executed);
    return {
      transactions: prepared.decoded.map(({ identity }) => identity),
      transactionsRoot: orderedTrieRoot(executed.raws, this.#leaves),
      outcome: attempt.outcome,
      unverified: attempt.unverified,
      cause: attempt.cause,
    };
  }

  async #attempt(prepared: PreparedJob, preState: PreState): Promise<Attempt> {
    const { job } = prepared;
    try {
      const outcome = await this.#execute(prepared, preState);
      const executed = appendExecuted(job, preState.ancestors[0], rawsOf(prepared), outcome.receipts);
      const unverified = findMismatch(job, executed, this.#leaves);
      if (unverified) {
        return { outcome: undefined, unverified, cause: undefined };
      }
      this.#storeCodes(outcome.changes);
      return { executed: { ...executed, layer: outcome.changes }, outcome, unverified, cause: undefined };
    } catch (error) {
      if (error instanceof JobCancelledError) {
        throw error;
      }
      const cause = error instanceof Error ? error.message : String(error);
      return { outcome: undefined, unverified: unverifiedReasonOf(error), cause };
    }
  }

  async #execute(
    { job, engine, transactions, rounds }: PreparedJob,
    { ancestors, layers }: PreState,
  ): Promise<ExecutionOutcome> {
    if (job.index === 0) {
      this.#base.known.add(overwritten(job.environment));
    }
    const { known } = this.#base;
    const run = new BlockRun({
      job,
      engine,
      ancestors: parentHashes([job, ...ancestors]),
      transactions,
      gasUsed: job.index === 0 ? 0n : (ancestors[0]?.gasUsed ?? 0n),
    });
    try {
      const { result, state } = await complete(run, {
        readerOf: (missing) => layered(known.reader(missing), layers),
        turn: this.#engineQueue.urgent,
        fetch: async (missing, progress) => {
          this.#written = [progress.state.changes(), ...layers];
          await this.#jobs.wait(rounds.fetch(missing, run.executed.length));
        },
      });
      return {
        receipts: result.map(({ receipt }) => receipt),
        extras: result.map(({ extra }) => extra),
        changes: state.changes(),
      };
    } finally {
      this.#written = undefined;
    }
  }

  #storeCodes(changes: StateChanges): void {
    const { codes } = this.#options;
    for (const { account, code } of changes.values()) {
      if (account && code) {
        codes.set(account.codeHash, code);
      }
    }
  }
}

const rawsOf = ({ decoded }: PreparedJob): readonly Uint8Array[] => decoded.map(({ raw }) => raw);

/** Returns why an error of an execution leaves a message without verified state. */
const unverifiedReasonOf = (error: unknown): UnverifiedReason => {
  if (error instanceof NotExecutableError) {
    return "unexecutable";
  }
  if (error instanceof UnreadableStateError) {
    return error.reason;
  }
  return error instanceof TransactionError ? "rejected" : "failed";
};
