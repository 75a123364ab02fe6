import type { BlockId } from "../core/heads.ts";
import type { StateChanges } from "../core/stateReader.ts";
import { ZERO_HASH } from "../ethereum/hex.ts";
import type { Flashblock } from "../feed/message.ts";
import type { BlockMessages } from "../feed/sequenceState.ts";
import { AppliedChain } from "./appliedChain.ts";
import type { ExtraBlockFields, PendingChain } from "./applyFlashblock.ts";
import type { KnownSender } from "./decode.ts";
import type { Execution, Executor, FlashblockJob } from "./execution.ts";
import { createJob, decodeMessage, type FeedMessage, type QueuedMessage } from "./queuedMessage.ts";

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
  #queue: QueuedMessage[] = [];
  #base = NO_BASE;
  #nextId = 1;
  /** All messages above the base, whether or not they are in the queue. */
  #messages: readonly FeedMessage[] = [];

  constructor(options: ExecutionPipelineOptions) {
    this.#options = options;
  }

  follow(blocks: readonly BlockMessages[]): void {
    this.#messages = blocks.flatMap((block) => block.messages.map((message) => ({ block, message })));
    this.#followMessages();
  }

  rebase(base: BlockId, isExecuted: boolean, extraBlockFields: ExtraBlockFields): void {
    this.#base = base;
    const last = isExecuted ? this.#queue.findLast(({ number }) => number <= base.number) : undefined;
    const above = last === undefined ? [] : this.#queue.filter(({ id }) => id > last.id);
    for (const queued of this.#queue) {
      if (!above.includes(queued)) {
        clearTimeout(queued.timer);
      }
    }
    this.#queue = above;
    this.#messages = this.#messages.filter(({ message }) => above.some((queued) => queued.message === message));
    const failed = above.findIndex(({ execution }) => execution?.unverified && execution.unverified !== "late");
    if (failed >= 0) {
      this.#cut(failed);
    }
    this.#options.executor.rebase(base, last?.id);
    this.#applied.rebase(base, extraBlockFields);
  }

  awaits(number: bigint): boolean {
    return this.#queue.some((queued) => queued.number <= number && !queued.execution);
  }

  chain(): PendingChain {
    return this.#applied.extend(this.#queue);
  }

  jobOf(message: Flashblock): number | undefined {
    return this.#queue.find((queued) => queued.message === message)?.id;
  }

  async changesOf(message: Flashblock): Promise<StateChanges | undefined> {
    const result = this.#queue.find((queued) => queued.message === message)?.result;
    return result?.then(
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

  /** Removes the messages from the first difference on, then executes those that are not in the queue. */
  #followMessages(): void {
    const changed = this.#messages.findIndex(({ message }, position) => this.#queue[position]?.message !== message);
    const unchanged = changed < 0 ? this.#messages.length : changed;
    this.#cut(unchanged);
    for (const message of this.#messages.slice(unchanged)) {
      this.#enqueue(message);
    }
  }

  #enqueue({ block, message }: FeedMessage): void {
    const id = this.#nextId++;
    const job = createJob(id, this.#queue.at(-1)?.id, { block, message });
    if (!job) {
      return;
    }
    const startedMs = performance.now();
    const queued: QueuedMessage = {
      ...{ id, message, block, number: block.number, base: this.#base },
      result: this.#options.executor.execute(job),
      ...{ execution: undefined, timer: undefined },
    };
    queued.timer = setTimeout(() => this.#expireFrom(queued), this.#deadlineMs(message));
    this.#queue.push(queued);
    queued.result.then(
      (execution) => this.#onExecuted(queued, execution, performance.now() - startedMs),
      () => this.#onFailed(queued),
    );
  }

  #onExecuted(queued: QueuedMessage, execution: Execution, durationMs: number): void {
    if (!this.#queue.includes(queued)) {
      return;
    }
    this.#options.onExecuted(execution, { number: queued.number, index: queued.message.index }, durationMs);
    if (execution.unverified && queued.base.hash !== this.#base.hash) {
      this.#retryFrom(queued);
    } else {
      this.#finish(queued, execution);
    }
    this.#options.onChange();
  }

  #onFailed(queued: QueuedMessage): void {
    if (!this.#queue.includes(queued) || queued.execution) {
      return;
    }
    this.#finish(queued, decodeMessage(queued, "failed", this.#options.senderOf));
    this.#options.onChange();
  }

  /** Executes a message that failed on another base again on this one, with all messages after it. */
  #retryFrom(queued: QueuedMessage): void {
    this.#cut(this.#queue.indexOf(queued));
    this.#followMessages();
  }

  /** Shows a late message, and all that wait for it, without state. */
  #expireFrom(late: QueuedMessage): void {
    for (const queued of this.#queue.slice(this.#queue.indexOf(late))) {
      if (!queued.execution) {
        this.#finish(queued, decodeMessage(queued, "late", this.#options.senderOf));
      }
    }
    this.#options.onChange();
  }

  #finish(queued: QueuedMessage, execution: Execution): void {
    clearTimeout(queued.timer);
    queued.timer = undefined;
    // The message was shown without state, and now has it.
    if (queued.execution) {
      this.#applied.restart();
    }
    queued.execution = execution;
  }

  #deadlineMs(message: Flashblock): number {
    const isBehind = this.#queue.some(({ execution }) => execution?.unverified === "late");
    const deadlineMs = this.#options.deadlineMsOf(message);
    return isBehind ? Math.min(deadlineMs, BEHIND_MS) : deadlineMs;
  }

  /** Removes all messages but the first `count`. */
  #cut(count: number): void {
    for (const { timer } of this.#queue.slice(count)) {
      clearTimeout(timer);
    }
    this.#queue = this.#queue.slice(0, count);
    if (this.#applied.count > count) {
      this.#applied.restart();
    }
  }
}

/** Creates the pipeline. Its first base is set by `rebase`. */
export const createExecutionPipeline = (options: ExecutionPipelineOptions): ExecutionPipeline =>
  new MessageQueue(options);
