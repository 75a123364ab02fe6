import { errorText } from "../core/errorText.ts";
import type { StateChanges } from "../core/stateReader.ts";
import { createBloom, orBloom } from "../ethereum/bloom.ts";
import { formatData } from "../ethereum/hex.ts";
import { type LeafCache, orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import { postExecReceipt } from "../ethereum/postExec.ts";
import { encodeReceipt, type Receipt } from "../ethereum/receipt.ts";
import type { ExecutionContext } from "../evm/engine.ts";
import { NotExecutableError, TooManyReadsError, TransactionError } from "../evm/executionErrors.ts";
import { complete, type FetchingContext } from "../evm/reads/complete.ts";
import {
  type ExecutableMessage,
  type Executed,
  type Execution,
  isFaultOfMessage,
  type MessageInput,
  type TransactionOutcome,
  type UnverifiedReason,
} from "./executableMessage.ts";
import { ExecutedChain, type ExecutedMessage, layersOf } from "./executedChain.ts";
import { executeTransaction } from "./executeTransaction.ts";
import { ReadSets } from "./expectedKeys.ts";
import { MessageReads } from "./messageReads.ts";
import { MessageSteps, overwritten, parentHashes } from "./messageSteps.ts";
import { InvalidRefund, refundsOf, settleRefund, withRefunds } from "./refunds.ts";

/** What one message has executed. */
interface BlockRun {
  readonly transactions: readonly Executed[];
  /** The earlier transactions of its block, with the refunds of this message. */
  readonly revised: readonly Executed[];
  readonly changes: StateChanges;
}

/** The result of one message's execution. */
interface Attempt extends Pick<Execution, "outcomes" | "revised" | "changes" | "unverified" | "cause"> {
  /** All of its block so far. Present if the outcome is verified. */
  readonly transactions?: readonly Executed[];
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
interface MessageRun extends Omit<MessageInput, "message" | "ahead" | "rules"> {
  readonly ahead: readonly MessageSteps[];
  readonly context: MessageContext;
  readonly chain: ExecutedChain;
  readonly steps: MessageSteps;
  /** The executed messages before it, newest first. */
  readonly ancestors: readonly ExecutedMessage[];
  /** The last of them, if it belongs to the same block. */
  readonly earlier: ExecutedMessage | undefined;
}

/** Executes the messages of one chain, one after another, each on the outcome of another. */
export class MessageExecutor {
  readonly #readSets = new ReadSets();
  #chain: ExecutedChain | undefined;
  /** The messages that waited for the newest one. */
  #ahead: ReadonlyMap<number, MessageSteps> = new Map();
  /** The roots of a block are computed again for each of its messages. */
  readonly #leaves: LeafCache = new WeakMap();
  readonly #encoded = new WeakMap<Receipt, Uint8Array>();

  /** Executes a message. With `isExecutable: false` it only decodes, because the block's rules are not known. */
  async run(input: MessageInput, context: MessageContext): Promise<Execution> {
    this.#chain ??= new ExecutedChain(context.known);
    this.#chain.moveTo(input.base, context.known);
    const engine = context.engine(input.rules);
    const known = this.#ahead;
    const steps = new MessageSteps(input.message, engine, known.get(input.message.id));
    this.#ahead = new Map(input.ahead.map((each) => [each.id, new MessageSteps(each, engine, known.get(each.id))]));
    const ahead = [...this.#ahead.values()];
    const ancestors = this.#chain.ancestors(input.message.before);
    const earlier = input.message.index === 0 ? undefined : ancestors[0];
    return this.#run({ ...input, context, chain: this.#chain, steps, ahead, ancestors, earlier });
  }

  async #run(run: MessageRun): Promise<Execution> {
    const { chain, steps, ancestors, earlier, isExecutable } = run;
    const { message, decoded } = steps;
    const layers = layersOf(ancestors);
    const isKnown = layers !== undefined && isExecutable;
    const unread =
      decoded.find((each) => isFaultOfMessage(each.unverified)) ??
      decoded.find((each) => each.unverified !== undefined);
    const unverified = unread?.unverified ?? (isKnown ? undefined : "unexecutable");
    const cause = unread?.cause ?? (isExecutable ? undefined : "the rules of this block are not known");
    const { transactions = [], ...outcome } =
      layers && !unverified ? await this.#attempt(run, layers) : unverifiedAttempt(unverified ?? "unexecutable", cause);
    const { id, before, environment } = message;
    const raws = [...(earlier?.raws ?? []), ...decoded.map(({ raw }) => raw)];
    chain.add({ id, before, environment, raws, transactions, layer: outcome.changes });
    return {
      transactions: decoded.map(({ identity }) => identity),
      transactionsRoot: orderedTrieRoot(raws, this.#leaves),
      ...outcome,
    };
  }

  async #attempt(run: MessageRun, layers: readonly StateChanges[]): Promise<Attempt> {
    try {
      const { transactions, revised, changes } = await this.#execute(run, layers);
      const all = [...revised, ...transactions];
      const unverified = this.#findMismatch(run.steps.message, all);
      if (unverified) {
        return unverifiedAttempt(unverified);
      }
      const isRevised = run.earlier !== undefined && revised !== run.earlier.transactions;
      return {
        transactions: all,
        outcomes: transactions.map(outcomeOf),
        revised: isRevised ? revised.map(outcomeOf) : undefined,
        changes,
        unverified,
      };
    } catch (error) {
      const cause = errorText(error);
      return unverifiedAttempt(unverifiedReasonOf(error), cause);
    }
  }

  async #execute(run: MessageRun, layers: readonly StateChanges[]): Promise<BlockRun> {
    const { chain, steps, ahead, context, ancestors, maxSearchMs } = run;
    const { message } = steps;
    const earlier = run.earlier?.transactions ?? [];
    const refunds = refundsOf(message, earlier.length + message.transactions.length);
    const revised = withRefunds(earlier, refunds);
    if (message.index === 0) {
      chain.enter(overwritten(message.environment));
    }
    const gasUsed = gasUsedOf(revised);
    const stepped = steps.run<Executed>(
      parentHashes([message, ...ancestors]),
      (context, transaction, before) =>
        executeTransaction(context, transaction, before.at(-1)?.receipt.cumulativeGasUsed ?? gasUsed, {
          refund: refunds.get(earlier.length + before.length),
        }),
      revised === earlier ? undefined : (context) => settleRevised(context, earlier, revised),
    );
    let reads: MessageReads | undefined;
    const { result, state } = await complete(stepped, {
      readerOf: (missing) => chain.reader(layers, missing),
      fetch: (missing, progress) => {
        reads ??= new MessageReads({
          ...{ steps, ahead, chain, layers, readSets: this.#readSets, maxSearchMs },
          fetch: (keys, calls) => context.fetch(keys, calls),
        });
        return reads.fetch(missing, progress);
      },
    });
    return { transactions: result, revised, changes: state.changes() };
  }

  /** Returns the first field in which the message and the execution of its block differ, or `undefined`. */
  #findMismatch({ expected, postExec }: ExecutableMessage, block: readonly Executed[]): UnverifiedReason | undefined {
    const gasUsed = gasUsedOf(block);
    if (gasUsed !== expected.gasUsed) {
      return "gas";
    }
    if (formatData(bloomOf(block)) !== expected.logsBloom) {
      return "bloom";
    }
    const receipts = block.map(({ receipt }) => this.#encode(receipt));
    // The root of a sealed block has the receipt of its last transaction. The specification does not say whether a message's has it.
    const last = postExec === undefined ? [] : [encodeReceipt(postExecReceipt(gasUsed))];
    const isRoot = (of: readonly Uint8Array[]): boolean => orderedTrieRoot(of, this.#leaves) === expected.receiptsRoot;
    return isRoot(receipts) || (last.length > 0 && isRoot([...receipts, ...last])) ? undefined : "receiptsRoot";
  }

  /** Each message of a block encodes all receipts up to it. */
  #encode(receipt: Receipt): Uint8Array {
    const encoded = this.#encoded.get(receipt) ?? encodeReceipt(receipt);
    this.#encoded.set(receipt, encoded);
    return encoded;
  }
}

const gasUsedOf = (block: readonly Executed[]): bigint => block.at(-1)?.receipt.cumulativeGasUsed ?? 0n;

const bloomOf = (block: readonly Executed[]): Uint8Array => {
  const bloom = createBloom();
  for (const { receipt } of block) {
    orBloom(bloom, receipt.logsBloom);
  }
  return bloom;
};

/** Returns the run of a message, for a thread that has all messages of one chain. */
export const messageRuns = () => {
  const executor = new MessageExecutor();
  return { message: (input: MessageInput, context: MessageContext) => executor.run(input, context) };
};

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
