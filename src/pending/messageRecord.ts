import type { BlockId } from "../core/heads.ts";
import type { StateChanges } from "../core/stateReader.ts";
import type { PendingEnvironment } from "../core/view.ts";
import { type Data, parseData } from "../ethereum/hex.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";
import { orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import type { FeedMessage } from "../feed/feedMessage.ts";
import type { BlockMessages, Verdict } from "../feed/sequenceState.ts";
import { applyMessage, type PendingChain } from "./applyMessage.ts";
import {
  type ExecutableMessage,
  type Execution,
  isFaultOfMessage,
  type UnverifiedReason,
} from "./executableMessage.ts";

interface MessageRun {
  readonly id: number;
  /** The base at the start of the execution. */
  readonly base: BlockId;
  /** The result, also if it is late. */
  readonly result: Promise<Execution>;
}

interface Applied {
  readonly before: PendingChain;
  readonly execution: Execution;
  readonly chain: PendingChain;
}

/** All that is known of one message of the feed above the base. */
export class MessageRecord {
  readonly message: FeedMessage;
  readonly block: BlockMessages;
  readonly #environment: PendingEnvironment;
  /** The newest execution. Undefined if the message has to be executed again. */
  run: MessageRun | undefined;
  /** The outcome as it is shown. Undefined while it executes for the first time. */
  execution: Execution | undefined;
  /** The message that is shown: an earlier copy, while this one executes in its place. */
  shown: FeedMessage;
  /** A view contained the message. It keeps that form until it is executed again. */
  isShown = false;
  #applied: Applied | undefined;
  /** Of the deadline of its first execution. */
  timer: NodeJS.Timeout | undefined;

  constructor(block: BlockMessages, message: FeedMessage, environment: PendingEnvironment) {
    this.block = block;
    this.message = message;
    this.shown = message;
    this.#environment = environment;
  }

  get number(): bigint {
    return this.block.number;
  }

  /** Present if the message is executed and verified. */
  get changes(): StateChanges | undefined {
    return this.execution?.changes;
  }

  /** Why the state after it is not verified. */
  get unverified(): UnverifiedReason | undefined {
    return this.execution?.unverified;
  }

  /** Whether its execution has shown that it is right or wrong. */
  get verdict(): Verdict {
    if (this.changes !== undefined) {
      return "verified";
    }
    return this.isWrong ? "wrong" : "open";
  }

  /** Whether the fault is in the message itself. */
  get isWrong(): boolean {
    return isFaultOfMessage(this.unverified);
  }

  get isLate(): boolean {
    return this.unverified === "late";
  }

  /**
   * Whether the message and those after it stay hidden behind verified ones. The state of these is true, and a node's may be older.
   * A message that this version cannot execute is shown, because such a chain would have no pre-confirmations otherwise.
   * So is a late one: a block time has passed, in which the verified ones were shown.
   */
  get isHidden(): boolean {
    return !this.isShown && (this.isWrong || (this.unverified !== undefined && SINGLE.has(this.unverified)));
  }

  /** Appends the message, as it is shown, to the chain before it. Returns the same chain again while nothing has changed. */
  applyTo(before: PendingChain): PendingChain | undefined {
    const { execution } = this;
    if (!execution) {
      return undefined;
    }
    if (this.#applied?.before !== before || this.#applied.execution !== execution) {
      this.#applied = { before, execution, chain: applyMessage(before, this.shown, execution) };
    }
    return this.#applied.chain;
  }

  /** Resolves with its changes, also after its deadline. Undefined: they are not verified. */
  async untilExecuted(): Promise<StateChanges | undefined> {
    return this.run?.result.then(
      ({ changes }) => changes,
      () => undefined,
    );
  }

  /** Takes the place of an earlier record of the same part of the block, as clients have seen it. */
  replace(earlier: MessageRecord): void {
    if (earlier.isShown && earlier.execution) {
      this.execution = withoutChanges(earlier.execution);
      this.shown = earlier.shown;
      this.isShown = true;
    }
  }

  /** Discards the execution. A message that was shown keeps its receipts without state until it is executed again. */
  repeat(): void {
    this.endDeadline();
    this.run = undefined;
    this.execution = this.isShown && this.execution ? withoutChanges(this.execution) : undefined;
  }

  finish(execution: Execution): void {
    this.endDeadline();
    this.execution = execution;
    this.shown = this.message;
  }

  /** Shows the message without state. What is shown already keeps its receipts. */
  finishWithoutState(unverified: "late" | "failed"): void {
    if (this.execution) {
      this.execution = { ...this.execution, unverified };
    } else {
      this.finish(this.#decode(unverified));
    }
  }

  endDeadline(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  /** Returns what its execution needs. `before`: the id of the run before. */
  executable(id: number, before: number | undefined): ExecutableMessage {
    const { index, transactions, closingTransaction, commitments, accessList } = this.message;
    const { gasUsed, logsBloom, receiptsRoot } = commitments;
    return {
      id,
      before,
      environment: this.#environment,
      index,
      transactions,
      accessList,
      postExec: closingTransaction,
      expected: { gasUsed, logsBloom, receiptsRoot },
    };
  }

  #decode(unverified: "late" | "failed"): Execution {
    const { block, message } = this;
    const blockTransactions = block.messages.slice(0, message.index + 1).flatMap(({ transactions }) => transactions);
    return decodeOnly(blockTransactions, message.transactions, unverified);
  }
}

/** These happen to single messages. Each of the others would happen to every block again, or has been waited for. */
const SINGLE: ReadonlySet<UnverifiedReason> = new Set(["failed", "tooMuchState"]);

/** Removes the changes of an execution on another base. */
const withoutChanges = (execution: Execution): Execution => ({ ...execution, changes: undefined, unverified: "late" });

/**
 * Decodes a flashblock without executing it, while its execution is late or has failed. The result has neither state nor senders.
 * It runs on the main thread, where a recovery takes some 50 us.
 */
export const decodeOnly = (
  blockTransactions: readonly Data[],
  transactions: readonly Data[],
  unverified: UnverifiedReason,
): Execution => ({
  transactions: transactions.map((raw) => ({ hash: keccak256Hex(parseData(raw)), sender: undefined })),
  transactionsRoot: orderedTrieRoot(blockTransactions.map(parseData)),
  outcomes: undefined,
  changes: undefined,
  unverified,
});
