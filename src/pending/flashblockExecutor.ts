import type { StateChanges } from "../core/stateReader.ts";
import { type LeafCache, orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import type { ExecutionContext } from "../evm/engine.ts";
import { NotExecutableError, TooManyReadsError, TransactionError } from "../evm/executionErrors.ts";
import { complete, type FetchingContext } from "../evm/reads/complete.ts";
import type { Decoded } from "./decodeTransaction.ts";
import {
  appendExecuted,
  ExecutedChain,
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
  isFaultOfMessage,
  type MessageInput,
  type TransactionOutcome,
  type UnverifiedReason,
} from "./flashblockJob.ts";
import { JobSteps, overwritten, parentHashes } from "./jobSteps.ts";
import { MessageReads } from "./messageReads.ts";
import { InvalidRefund, refundsOf, settleRefund, withRefunds } from "./refunds.ts";

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

/** What a message's run uses of its thread. */
export type MessageContext = Pick<FetchingContext, "engine" | "known" | "fetch">;

/** One message in its thread. */
interface MessageJob extends Omit<MessageInput, "job" | "rules"> {
  readonly context: MessageContext;
  readonly chain: ExecutedChain;
  readonly steps: JobSteps;
}

/** Executes the messages of one chain, one after another, each on the outcome of another. */
export class FlashblockExecutor {
  readonly #readSets = new ReadSets();
  #chain: ExecutedChain | undefined;
  /** The roots of a block are computed again for each of its messages. */
  readonly #leaves: LeafCache = new WeakMap();

  /** Executes a message. With `isExecutable: false` it only decodes, because the block's rules are not known. */
  async run(input: MessageInput, context: MessageContext): Promise<Execution> {
    this.#chain ??= new ExecutedChain(context.known);
    this.#chain.moveTo(input.base, context.known);
    const steps = new JobSteps(input.job, context.engine(input.rules));
    return this.#run({ ...input, context, chain: this.#chain, steps });
  }

  async #run(message: MessageJob): Promise<Execution> {
    const { chain, isExecutable } = message;
    const { job, decoded } = message.steps;
    const ancestors = chain.ancestors(job.before);
    const layers = layersOf(ancestors);
    const isKnown = layers !== undefined && isExecutable;
    const unread =
      decoded.find((each) => isFaultOfMessage(each.unverified)) ??
      decoded.find((each) => each.unverified !== undefined);
    const unverified = unread?.unverified ?? (isKnown ? undefined : "unexecutable");
    const cause = unread?.cause ?? (isExecutable ? undefined : "the rules of this block are not known");
    const { executed = appendExecuted(job, ancestors[0], rawsOf(decoded), { transactions: [] }), ...outcome } =
      layers && !unverified
        ? await this.#attempt(message, { ancestors, layers })
        : unverifiedAttempt(unverified ?? "unexecutable", cause);
    chain.add(executed);
    return {
      transactions: decoded.map(({ identity }) => identity),
      transactionsRoot: orderedTrieRoot(executed.raws, this.#leaves),
      ...outcome,
    };
  }

  async #attempt(message: MessageJob, preState: PreState): Promise<Attempt> {
    const { job, decoded } = message.steps;
    try {
      const { transactions, revised, changes } = await this.#execute(message, preState);
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
      const cause = error instanceof Error ? error.message : String(error);
      return unverifiedAttempt(unverifiedReasonOf(error), cause);
    }
  }

  async #execute(message: MessageJob, { ancestors, layers }: PreState): Promise<BlockRun> {
    const { chain, steps, context, maxSearchMs } = message;
    const { job } = steps;
    const earlier = earlierOf(job, ancestors[0])?.transactions ?? [];
    const refunds = refundsOf(job, earlier.length + job.transactions.length);
    const revised = withRefunds(earlier, refunds);
    if (job.index === 0) {
      chain.enter(overwritten(job.environment));
    }
    const gasUsed = revised.at(-1)?.receipt.cumulativeGasUsed ?? 0n;
    const run = steps.run<Executed>(
      parentHashes([job, ...ancestors]),
      (context, transaction, before) =>
        executeTransaction(context, transaction, before.at(-1)?.receipt.cumulativeGasUsed ?? gasUsed, {
          refund: refunds.get(earlier.length + before.length),
        }),
      revised === earlier ? undefined : (context) => settleRevised(context, earlier, revised),
    );
    const reads = new MessageReads({
      ...{ steps, chain, layers, readSets: this.#readSets, maxSearchMs },
      fetch: (keys, calls) => context.fetch(keys, calls),
    });
    const { result, state } = await complete(run, {
      readerOf: (missing) => chain.reader(layers, missing),
      fetch: (missing, progress) => reads.fetch(missing, progress),
    });
    return { transactions: result, revised, changes: state.changes() };
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
  if (error instanceof TooManyReadsError) {
    return "tooMuchState";
  }
  return error instanceof TransactionError || error instanceof InvalidRefund ? "rejected" : "failed";
};
