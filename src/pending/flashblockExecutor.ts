import type { BlockId } from "../core/heads.ts";
import type { StateChanges } from "../core/stateReader.ts";
import { type LeafCache, orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import type { Rules } from "../ethereum/rules.ts";
import type { Engine } from "../evm/engine.ts";
import { NotExecutableError } from "../evm/notExecutableError.ts";
import { complete } from "../evm/reads/complete.ts";
import { TransactionError } from "../evm/transactionError.ts";
import { BlockRun } from "./blockRun.ts";
import { overwritten, parentHashes } from "./blockState.ts";
import { EngineQueue, type EngineTurns } from "./engineQueue.ts";
import { ExecutedChain, type ExecutedChainOptions, layersOf } from "./executedChain.ts";
import { appendExecuted, type ExecutedFlashblock, findMismatch } from "./executedFlashblock.ts";
import type { Execution, ExecutionOutcome, FlashblockJob, UnverifiedReason } from "./execution.ts";
import { type PreparedJob, PreparedJobs } from "./preparedJobs.ts";
import { JobCancelledError, type RoundLimits, UnreadableStateError } from "./stateRounds.ts";

/** A remainder ends this long after the change of base that discarded its state. Jobs of a sealed block have the same time. */
export const MAX_AFTER_SEALED_MS = 2_000;

interface ExecutionOptions extends RoundLimits {
  readonly engine: (rules: Rules) => Engine;
}

export interface FlashblockExecutorOptions extends ExecutedChainOptions, ExecutionOptions {}

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

export const createFlashblockExecutor = (options: FlashblockExecutorOptions, base: BlockId): FlashblockExecutor =>
  new FlashblockExecutor(options, new ExecutedChain(options, base), new EngineQueue());

/** Executes jobs one after another, each on the outcome of another. */
export class FlashblockExecutor {
  readonly #options: ExecutionOptions;
  readonly #engineQueue: EngineTurns;
  readonly #jobs: PreparedJobs;
  #chain: ExecutedChain;
  /** The chain that the last change of base discarded. */
  #discarded: { readonly chain: ExecutedChain; readonly atMs: number } | undefined;
  /** The roots of a block are computed again for each of its messages. */
  readonly #leaves: LeafCache = new WeakMap();
  /** Everything that the running job and those below it have written, newest first. */
  #written: readonly StateChanges[] | undefined;

  constructor(options: ExecutionOptions, chain: ExecutedChain, engineQueue: EngineTurns) {
    this.#options = options;
    this.#chain = chain;
    this.#engineQueue = engineQueue;
    this.#jobs = new PreparedJobs({
      ...{ chain: () => this.#chain, engine: options.engine, engineQueue, limits: options },
      written: () => this.#written ?? this.#chain.layers(),
    });
  }

  /** Announces a job. Its state can be fetched while earlier jobs wait for state. */
  expect(job: FlashblockJob, rules: Rules): void {
    this.#jobs.expect(job, rules);
  }

  /**
   * Executes a job. With `isExecutable: false` it only decodes, because the block's rules are not known.
   * Throws JobCancelledError if nobody awaits the outcome any more, or the state that a remainder starts from is gone.
   */
  async run(job: FlashblockJob, rules: Rules, isExecutable = true): Promise<Execution> {
    const executor = job.isRemainder ? this.#beside(job) : this;
    executor.#jobs.start(job);
    try {
      return await executor.#run(job, rules, isExecutable);
    } finally {
      executor.#jobs.end(job);
    }
  }

  /** The base is another block now. `through`: the job whose outcome is that block's state; `undefined` if there is none. */
  rebase(base: BlockId, through: number | undefined): void {
    const { isCancelled = () => through === undefined } = this.#options;
    if (through === undefined) {
      this.#discarded = { chain: this.#chain, atMs: performance.now() };
      this.#chain = this.#chain.startAt(base);
      this.#jobs.rebase(isCancelled, false);
    } else {
      this.#discarded = undefined;
      this.#jobs.rebase(isCancelled, this.#chain.seal(base, through));
    }
  }

  /** Returns an executor on the discarded chain. It executes one transaction at a time, while this one waits for state. */
  #beside({ before }: FlashblockJob): FlashblockExecutor {
    const discarded = this.#discarded;
    if (before === undefined || !discarded?.chain.has(before)) {
      throw new JobCancelledError();
    }
    const { engine } = this.#options;
    const { idle } = this.#engineQueue;
    const deadlineMs = () => discarded.atMs + MAX_AFTER_SEALED_MS;
    return new FlashblockExecutor({ engine, deadlineMs }, discarded.chain, { urgent: idle, idle });
  }

  async #run(job: FlashblockJob, rules: Rules, isExecutable: boolean): Promise<Execution> {
    const ancestors = this.#chain.ancestors(job.before);
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
    this.#chain.add(executed);
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
      this.#chain.enter(overwritten(job.environment));
    }
    const run = new BlockRun({
      job,
      engine,
      ancestors: parentHashes([job, ...ancestors]),
      transactions,
      gasUsed: job.index === 0 ? 0n : (ancestors[0]?.gasUsed ?? 0n),
    });
    try {
      const { result, state } = await complete(run, {
        readerOf: (missing) => this.#chain.reader(layers, missing),
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
