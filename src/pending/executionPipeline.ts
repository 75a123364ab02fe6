import type { BlockId } from "../core/heads.ts";
import { ZERO_HASH } from "../ethereum/hex.ts";
import type { FeedMessage } from "../feed/feedMessage.ts";
import type { BlockMessages } from "../feed/sequenceState.ts";
import type { ExtraBlockFields, PendingChain } from "./applyMessage.ts";
import { type Execution, noExecutor } from "./executableMessage.ts";
import { MessageRecord } from "./messageRecord.ts";

export interface ExecutionPipelineOptions {
  /** Returns the deadline of a message's execution. After it, this message and all later ones are shown without state. */
  readonly deadlineMsOf: (message: FeedMessage) => number;
  /** Called when the chain changes, because an execution ended or missed its deadline. */
  readonly onChange: () => void;
  readonly onExecuted: (
    execution: Execution,
    message: { readonly number: bigint; readonly index: number },
    durationMs: number,
  ) => void;
}

/** The messages that clients may see. */
export interface ShownMessages {
  readonly chain: PendingChain;
  /** The number of these messages. */
  readonly count: number;
  /** The chain after each of them, and after each message behind them that may be right. */
  readonly prefixes: readonly PendingChain[];
  /** The next message is wrong, or its execution failed, so it is not shown, nor are all after it. */
  readonly isCut: boolean;
}

/** The longest wait for each message after one that missed its deadline. */
const BEHIND_MS = 100;

/** The base before the first head. */
const NO_BASE: BlockId = { number: 0n, hash: ZERO_HASH };

/** Executes the feed's messages in order, each on the state after the one before. It owns their records. */
export class ExecutionPipeline {
  readonly #options: ExecutionPipelineOptions;
  #executor = noExecutor;
  /** Of all messages above the base, in order. */
  #queue: MessageRecord[] = [];
  /** The chain before the first message. */
  #empty: PendingChain = { base: NO_BASE, extraBlockFields: {}, blocks: [] };
  #nextId = 1;

  /** The first base is set by `rebase`. */
  constructor(options: ExecutionPipelineOptions) {
    this.#options = options;
  }

  /** Must be called before the first message. */
  begin(executor = noExecutor): void {
    this.#executor = executor;
  }

  /** Takes the current blocks above the base. Executes new messages, and discards messages that are not among them. */
  setBlocks(blocks: readonly BlockMessages[]): void {
    const messages = blocks.flatMap((block) => block.messages.map((message) => ({ block, message })));
    const changed = messages.findIndex(({ message }, position) => this.#queue[position]?.message !== message);
    const kept = changed < 0 ? messages.length : changed;
    const after = this.#queue.slice(kept);
    this.#cut(kept);
    for (const { block, message } of messages.slice(kept)) {
      const environment = block.messages[0]?.environment;
      if (environment === undefined) {
        continue;
      }
      const record = new MessageRecord(block, message, environment);
      // The message was in the queue before, or a copy of it that was wrong.
      const earlier = after.find((other) => isSameMessage(other.message, message));
      if (earlier !== undefined) {
        record.replace(earlier);
      }
      this.#queue.push(record);
    }
    this.#showLate(kept);
    this.#executeDue();
  }

  /**
   * Moves the base to another block. `isExecuted`: that block is the result of the executions up to its number.
   * The executions above it then stay valid, and its state is not fetched again.
   */
  rebase(base: BlockId, isExecuted: boolean, extraBlockFields: ExtraBlockFields): void {
    this.#empty = { base, extraBlockFields, blocks: [] };
    const last = isExecuted ? this.#queue.findLast(({ number }) => number <= base.number) : undefined;
    const through = last?.run?.id;
    for (const record of this.#queue) {
      if (record.number <= base.number) {
        record.endDeadline();
      }
    }
    this.#queue = this.#queue.filter(({ number }) => number > base.number);
    this.#executor.rebase(base, through);
    const failed = this.#queue.findIndex(({ unverified, isLate }) => unverified !== undefined && !isLate);
    const due = through === undefined ? 0 : failed;
    if (due >= 0) {
      this.#repeatFrom(due);
    }
  }

  /** Executes all messages again, on no value that the executor knows. */
  restart(): void {
    this.#executor.rebase(this.#empty.base, undefined);
    this.#repeatFrom(0);
    this.#executeDue();
  }

  /** Whether an execution of that block, or of one below it, still runs. */
  awaits(number: bigint): boolean {
    return this.#queue.some((record) => record.number <= number && !record.execution);
  }

  /** Returns all messages up to the first whose execution still runs. */
  chain(): PendingChain {
    return this.#chains().at(-1) ?? this.#empty;
  }

  /**
   * Returns the messages to show. A wrong message, or one whose execution failed, is treated like a gap: the verified ones before
   * it are shown, if there are any. If it is its block's first with users' transactions, the block below may lack its last
   * message. Then nothing of its block is shown until the block below is sealed.
   */
  shown(): ShownMessages {
    const chains = this.#chains();
    const applied = this.#queue.slice(0, chains.length);
    const failed = applied.findIndex(({ changes }) => changes === undefined);
    const isCut = failed > 0 && applied[failed]?.isHidden === true;
    const count = isCut ? this.#endBefore(applied, failed) : applied.length;
    const wrong = isCut ? applied.findIndex(({ isWrong }) => isWrong) : -1;
    const prefixes = wrong < 0 ? chains : chains.slice(0, wrong);
    return { chain: chains[count - 1] ?? this.#empty, count, prefixes, isCut };
  }

  /** Returns the number of messages that are shown before a hidden one. */
  #endBefore(applied: readonly MessageRecord[], hidden: number): number {
    const record = applied[hidden];
    if (!record?.isWrong || record.number === this.#empty.base.number + 1n) {
      return hidden;
    }
    const first = applied.findIndex(({ number }) => number === record.number);
    const hasUsers = applied.slice(first + 1, hidden).some(({ message }) => message.transactions.length > 0);
    return hasUsers ? hidden : first;
  }

  /** Records that a view contains the first `count` messages. */
  markShown(count: number): void {
    for (const record of this.#queue.slice(0, count)) {
      record.isShown = true;
    }
  }

  /** Returns the record of a message above the base. */
  record(message: FeedMessage): MessageRecord | undefined {
    return this.#queue.find((record) => record.message === message);
  }

  close(): Promise<void> {
    this.#cut(0);
    return this.#executor.close();
  }

  /** Messages that arrived after later ones were shown are shown without state at once, so that the later ones stay. */
  #showLate(from: number): void {
    const shown = this.#queue.findLastIndex(({ isShown }) => isShown);
    for (const record of this.#queue.slice(from, Math.max(shown, from))) {
      if (!record.execution) {
        record.finishWithoutState("late");
      }
    }
  }

  /** Executes the messages that have no run, each after the one before. */
  #executeDue(): void {
    for (const [position, record] of this.#queue.entries()) {
      if (record.run === undefined) {
        this.#execute(record, this.#queue[position - 1]?.run?.id);
      }
    }
  }

  #execute(record: MessageRecord, before: number | undefined): void {
    const id = this.#nextId++;
    const startedMs = performance.now();
    const result = this.#executor.execute(record.executable(id, before));
    record.run = { id, base: this.#empty.base, result };
    if (!record.execution) {
      record.timer = setTimeout(() => this.#expireFrom(record), this.#deadlineMs(record.message));
    }
    result.then(
      (execution) => this.#onExecuted(record, id, execution, performance.now() - startedMs),
      () => this.#onFailed(record, id),
    );
  }

  #onExecuted(record: MessageRecord, id: number, execution: Execution, durationMs: number): void {
    if (!this.#isCurrent(record, id)) {
      return;
    }
    this.#options.onExecuted(execution, { number: record.number, index: record.message.index }, durationMs);
    if (execution.unverified && record.run?.base.hash !== this.#empty.base.hash) {
      this.#repeatFrom(this.#queue.indexOf(record));
      this.#executeDue();
    } else {
      record.finish(execution);
    }
    this.#options.onChange();
  }

  #onFailed(record: MessageRecord, id: number): void {
    if (!this.#isCurrent(record, id)) {
      return;
    }
    record.finishWithoutState("failed");
    this.#options.onChange();
  }

  /** Whether the run is the newest one of a message that is still in the queue. */
  #isCurrent(record: MessageRecord, id: number): boolean {
    return record.run?.id === id && this.#queue.includes(record);
  }

  /** Discards the executions from a position on, because what they start from has changed. The messages stay. */
  #repeatFrom(position: number): void {
    for (const record of this.#queue.slice(position)) {
      record.repeat();
    }
  }

  /** Shows a late message, and all that wait for it, without state. */
  #expireFrom(late: MessageRecord): void {
    for (const record of this.#queue.slice(this.#queue.indexOf(late))) {
      if (!record.execution) {
        record.finishWithoutState("late");
      }
    }
    this.#options.onChange();
  }

  #deadlineMs(message: FeedMessage): number {
    const isBehind = this.#queue.some(({ isLate }) => isLate);
    const deadlineMs = this.#options.deadlineMsOf(message);
    return isBehind ? Math.min(deadlineMs, BEHIND_MS) : deadlineMs;
  }

  /** Removes all messages but the first `count`. */
  #cut(count: number): void {
    for (const record of this.#queue.slice(count)) {
      record.endDeadline();
    }
    this.#queue = this.#queue.slice(0, count);
  }

  /** Returns the chain after each message, up to the first without an execution. */
  #chains(): readonly PendingChain[] {
    const chains: PendingChain[] = [];
    for (const record of this.#queue) {
      const chain = record.applyTo(chains.at(-1) ?? this.#empty);
      if (chain === undefined) {
        break;
      }
      chains.push(chain);
    }
    return chains;
  }
}

/** Whether both are the same part of a block. Their content may differ. */
const isSameMessage = (one: FeedMessage, other: FeedMessage): boolean =>
  one.blockKey === other.blockKey && one.index === other.index;
