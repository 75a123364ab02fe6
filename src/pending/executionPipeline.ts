import type { BlockId } from "../core/heads.ts";
import type { StateChanges } from "../core/stateReader.ts";
import { ZERO_HASH } from "../ethereum/hex.ts";
import type { Flashblock } from "../feed/flashblock.ts";
import type { BlockMessages, Verdict } from "../feed/sequenceState.ts";
import { AppliedChain, type MessageForm } from "./appliedChain.ts";
import { type ExtraBlockFields, environmentOf, type PendingChain } from "./applyFlashblock.ts";
import type { KnownSender } from "./decode.ts";
import {
  type Execution,
  type Executor,
  type FlashblockJob,
  isHiddenBehindVerified,
  isWrongMessage,
} from "./execution.ts";
import { createJob, decodeMessage, type FeedMessage, type QueuedMessage, withoutChanges } from "./queuedMessage.ts";

export interface ExecutionPipelineOptions {
  readonly executor: Executor;
  /** Default: no sender is known. */
  readonly senderOf?: KnownSender | undefined;
  /** Returns the deadline of a message's execution. After it, this message and all later ones are shown without state. */
  readonly deadlineMsOf: (message: Flashblock) => number;
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
  /** The next message is wrong, or its execution failed, so that it is not shown, nor are all after it. */
  readonly isCut: boolean;
}

/** Executes the feed's messages in order, each on the state after the one before. */
export interface ExecutionPipeline {
  /** Takes the current blocks above the base. Executes new messages, and discards messages that are not among them. */
  follow(blocks: readonly BlockMessages[]): void;
  /**
   * Moves the base to another block. `isExecuted`: that block is the result of the executions up to its number.
   * The executions above it then stay valid, and its state is not fetched again.
   */
  rebase(base: BlockId, isExecuted: boolean, extraBlockFields: ExtraBlockFields): void;
  /** Whether an execution of that block, or of one below it, still runs. */
  awaits(number: bigint): boolean;
  /** Returns all messages up to the first whose execution still runs. */
  chain(): PendingChain;
  /**
   * Returns the messages to show. A wrong message, or one whose execution failed, is treated like a gap: the verified ones before
   * it are shown, if there are any.
   */
  shown(): ShownMessages;
  /** Records that a view contains the first `count` messages. */
  markShown(count: number): void;
  /** Whether a view contained a message above the base. */
  wasShown(message: Flashblock): boolean;
  /** Whether the execution of a message has shown that it is right or wrong. */
  verdictOf(message: Flashblock): Verdict;
  /** Returns the id of a message's job. Undefined if the message is not above the base. */
  jobOf(message: Flashblock): number | undefined;
  /** Resolves with the changes of a message above the base, also after its deadline. Undefined: they are not verified. */
  changesOf(message: Flashblock): Promise<StateChanges | undefined>;
  /** Executes the last transactions of a sealed block beside the messages: see Executor. */
  executeRest(job: Omit<FlashblockJob, "id">): Promise<Execution>;
  close(): void;
}

/** The longest wait for each message after one that missed its deadline. */
const BEHIND_MS = 100;

/** The base before the first head. */
const NO_BASE: BlockId = { number: 0n, hash: ZERO_HASH };

class MessageQueue implements ExecutionPipeline {
  readonly #options: ExecutionPipelineOptions;
  readonly #applied = new AppliedChain(NO_BASE);
  /** All messages above the base, in order. */
  #queue: QueuedMessage[] = [];
  #base = NO_BASE;
  #nextId = 1;

  constructor(options: ExecutionPipelineOptions) {
    this.#options = options;
  }

  follow(blocks: readonly BlockMessages[]): void {
    const messages = blocks.flatMap((block) => block.messages.map((message) => ({ block, message })));
    const changed = messages.findIndex(({ message }, position) => this.#queue[position]?.message !== message);
    const kept = changed < 0 ? messages.length : changed;
    const after = this.#queue.slice(kept);
    this.#cut(kept);
    for (const { block, message } of messages.slice(kept)) {
      const old = after.find((queued) => isSameMessage(queued.message, message));
      this.#enqueue({ block, message }, old);
    }
    this.#executeDue();
  }

  rebase(base: BlockId, isExecuted: boolean, extraBlockFields: ExtraBlockFields): void {
    this.#base = base;
    const last = isExecuted ? this.#queue.findLast(({ number }) => number <= base.number) : undefined;
    const through = last?.job?.id;
    for (const { number, timer } of this.#queue) {
      if (number <= base.number) {
        clearTimeout(timer);
      }
    }
    this.#queue = this.#queue.filter(({ number }) => number > base.number);
    this.#applied.rebase(base, extraBlockFields);
    this.#options.executor.rebase(base, through);
    const failed = this.#queue.findIndex(({ form }) => form?.execution.unverified && !isLate(form));
    const due = through === undefined ? 0 : failed;
    if (due >= 0) {
      this.#repeatFrom(due);
    }
  }

  awaits(number: bigint): boolean {
    return this.#queue.some((queued) => queued.number <= number && !queued.form);
  }

  chain(): PendingChain {
    return this.#applied.extend(this.#queue);
  }

  shown(): ShownMessages {
    this.#applied.extend(this.#queue);
    const applied = this.#queue.slice(0, this.#applied.count);
    const reasonOf = ({ form }: QueuedMessage) => form?.execution.unverified;
    const failed = applied.findIndex(({ form }) => !form?.execution.outcome?.changes);
    const queued = applied[failed];
    const isCut = failed > 0 && queued?.isShown === false && isHiddenBehindVerified(reasonOf(queued));
    const count = isCut ? failed : applied.length;
    const wrong = isCut ? applied.findIndex((each) => isWrongMessage(reasonOf(each))) : -1;
    const prefixes = this.#applied.prefixes(wrong < 0 ? applied.length : wrong);
    return { chain: this.#applied.at(count), count, prefixes, isCut };
  }

  markShown(count: number): void {
    for (const queued of this.#queue.slice(0, count)) {
      queued.isShown = true;
    }
  }

  wasShown(message: Flashblock): boolean {
    return this.#find(message)?.isShown === true;
  }

  verdictOf(message: Flashblock): Verdict {
    const execution = this.#find(message)?.form?.execution;
    if (execution?.outcome?.changes !== undefined) {
      return "verified";
    }
    return isWrongMessage(execution?.unverified) ? "wrong" : "open";
  }

  jobOf(message: Flashblock): number | undefined {
    return this.#find(message)?.job?.id;
  }

  async changesOf(message: Flashblock): Promise<StateChanges | undefined> {
    return this.#find(message)?.job?.result.then(
      ({ outcome }) => outcome?.changes,
      () => undefined,
    );
  }

  executeRest(job: Omit<FlashblockJob, "id">): Promise<Execution> {
    return this.#options.executor.executeRest({ ...job, id: this.#nextId++ });
  }

  close(): void {
    this.#cut(0);
  }

  #find(message: Flashblock): QueuedMessage | undefined {
    return this.#queue.find((queued) => queued.message === message);
  }

  /**
   * Ignores a message of a block whose first message is missing. `old`: the message was in the queue before, or a copy of it
   * that was wrong.
   */
  #enqueue({ block, message }: FeedMessage, old: QueuedMessage | undefined): void {
    if (environmentOf(block.messages[0]) === undefined) {
      return;
    }
    const form = old?.isShown === true && old.form ? withoutChanges(old.form) : undefined;
    const { number } = block;
    this.#queue.push({ message, block, number, isShown: form !== undefined, job: undefined, form, timer: undefined });
  }

  /** Executes the messages that have no job, each after the one before. */
  #executeDue(): void {
    for (const [position, queued] of this.#queue.entries()) {
      if (queued.job === undefined) {
        this.#execute(queued, this.#queue[position - 1]?.job?.id);
      }
    }
  }

  #execute(queued: QueuedMessage, before: number | undefined): void {
    const id = this.#nextId++;
    const job = createJob(id, before, queued);
    if (!job) {
      return;
    }
    const startedMs = performance.now();
    const result = this.#options.executor.execute(job);
    queued.job = { id, base: this.#base, result };
    if (!queued.form) {
      queued.timer = setTimeout(() => this.#expireFrom(queued), this.#deadlineMs(queued.message));
    }
    result.then(
      (execution) => this.#onExecuted(queued, id, execution, performance.now() - startedMs),
      () => this.#onFailed(queued, id),
    );
  }

  #onExecuted(queued: QueuedMessage, id: number, execution: Execution, durationMs: number): void {
    if (!this.#isCurrent(queued, id)) {
      return;
    }
    this.#options.onExecuted(execution, { number: queued.number, index: queued.message.index }, durationMs);
    if (execution.unverified && queued.job?.base.hash !== this.#base.hash) {
      this.#repeatFrom(this.#queue.indexOf(queued));
      this.#executeDue();
    } else {
      this.#finish(queued, { message: queued.message, execution });
    }
    this.#options.onChange();
  }

  #onFailed(queued: QueuedMessage, id: number): void {
    if (!this.#isCurrent(queued, id)) {
      return;
    }
    if (queued.form) {
      this.#finish(queued, { ...queued.form, execution: { ...queued.form.execution, unverified: "failed" } });
    } else {
      this.#decode(queued, "failed");
    }
    this.#options.onChange();
  }

  /** Whether the job is the newest one of a message that is still in the queue. */
  #isCurrent(queued: QueuedMessage, id: number): boolean {
    return queued.job?.id === id && this.#queue.includes(queued);
  }

  /**
   * Discards the executions from a position on, because what they start from has changed. The messages stay, and those
   * that were shown keep their form without state until they are executed again.
   */
  #repeatFrom(position: number): void {
    for (const queued of this.#queue.slice(position)) {
      clearTimeout(queued.timer);
      queued.timer = undefined;
      queued.job = undefined;
      queued.form = queued.isShown && queued.form ? withoutChanges(queued.form) : undefined;
    }
    this.#applied.cut(position);
  }

  /** Shows a late message, and all that wait for it, without state. */
  #expireFrom(late: QueuedMessage): void {
    for (const queued of this.#queue.slice(this.#queue.indexOf(late))) {
      if (!queued.form) {
        this.#decode(queued, "late");
      }
    }
    this.#options.onChange();
  }

  #decode(queued: QueuedMessage, unverified: "late" | "failed"): void {
    const execution = decodeMessage(queued, unverified, this.#options.senderOf);
    this.#finish(queued, { message: queued.message, execution });
  }

  #finish(queued: QueuedMessage, form: MessageForm): void {
    clearTimeout(queued.timer);
    queued.timer = undefined;
    // The message was shown without state, and now has it.
    if (queued.form) {
      this.#applied.cut(this.#queue.indexOf(queued));
    }
    queued.form = form;
  }

  #deadlineMs(message: Flashblock): number {
    const isBehind = this.#queue.some(({ form }) => form && isLate(form));
    const deadlineMs = this.#options.deadlineMsOf(message);
    return isBehind ? Math.min(deadlineMs, BEHIND_MS) : deadlineMs;
  }

  /** Removes all messages but the first `count`. */
  #cut(count: number): void {
    for (const { timer } of this.#queue.slice(count)) {
      clearTimeout(timer);
    }
    this.#queue = this.#queue.slice(0, count);
    this.#applied.cut(count);
  }
}

const isLate = ({ execution }: MessageForm): boolean => execution.unverified === "late";

/** Whether both are the same part of a block. Their content may differ. */
const isSameMessage = (one: Flashblock, other: Flashblock): boolean =>
  one.payloadId === other.payloadId && one.index === other.index;

/** Creates the pipeline. Its first base is set by `rebase`. */
export const createExecutionPipeline = (options: ExecutionPipelineOptions): ExecutionPipeline =>
  new MessageQueue(options);
