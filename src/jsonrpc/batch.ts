import { type Awaitable, type Reply, whenKnown } from "./call.ts";
import type { Item } from "./envelope.ts";
import {
  ARRAY_END,
  ARRAY_SEPARATOR,
  ARRAY_START,
  type Chunk,
  type CompletedCall,
  type DispatchResult,
  discardBody,
  formatCompleted,
  hasStream,
  isStream,
  joinResponses,
  MAX_JOINED_BYTES,
  noContent,
  type ResultMemory,
  tooLarge,
} from "./response.ts";
import { overBudget, type RpcError } from "./rpcError.ts";
import type { TurnClock } from "./turnClock.ts";

export interface BatchLimits {
  /** Calls in flight at a time. */
  readonly concurrency: number;
  /** Limit for the results of one batch. */
  readonly maxResponseBytes: number;
  /** Limits the calls that start in one turn of the event loop. */
  readonly turn: TurnClock;
  /** The body may have calls with large parameters. */
  readonly isLarge: boolean;
  /** Counts the calls, and the results until they are sent. Undefined: they are not counted. */
  readonly memory: ResultMemory | undefined;
}

/** Runs one call of a batch. `startMs` is the current time of `performance`. */
export type RunItem<R extends Reply> = (item: Item, startMs: number) => Awaitable<CompletedCall<R>>;

/** Above this size, the response is streamed. No call starts while more bytes of results wait to be sent. */
const MAX_UNSENT_BYTES = MAX_JOINED_BYTES;

/** A smaller batch costs less than counting it. */
const UNCOUNTED_CALLS = 16;

/** A streamed response is sent in parts of about this size. */
const MAX_PART_BYTES = 64 * 1024;

/** The work for such parameters goes on after the start of the call. The clock of the turn does not measure that part. */
const LARGE_PARAMS_BYTES = 64 * 1024;

const hasLargeParams = (item: Item): boolean => "call" in item && (item.call.paramsBytes ?? 0) > LARGE_PARAMS_BYTES;

/** Returns the result that a call holds until it is sent. A notification holds none. */
const heldBody = <R extends Reply>({ id, body }: CompletedCall<R>): Uint8Array | undefined =>
  id === undefined || body === undefined || isStream(body) ? undefined : body;

/**
 * One batch in flight. Each call has a slot in request order for its completed call.
 * Calls that complete at once need no promise.
 */
class Batch<R extends Reply> {
  readonly replies: R[] = [];
  readonly errors: RpcError[] = [];
  readonly #items: readonly Item[];
  readonly #run: RunItem<R>;
  readonly #limits: BatchLimits;
  readonly #slots: (CompletedCall<R> | undefined)[];
  #bytes = 0;
  /** Bytes of the results that are not sent. */
  #unsentBytes = 0;
  #next = 0;
  #running = 0;
  #completed = 0;
  #hasStream = false;
  #waitsForTurn = false;
  #isStopped = false;
  #overBudget: RpcError | undefined;
  #failure: { readonly error: unknown } | undefined;
  /** The response is being streamed. Each completed call is then progress. If not, only the decision is. */
  #isStreamed = false;
  #progress: PromiseWithResolvers<void> | undefined;

  constructor(items: readonly Item[], run: RunItem<R>, limits: BatchLimits) {
    this.#items = items;
    this.#run = run;
    this.#limits = limits;
    this.#slots = items.map(() => undefined);
  }

  /** Runs the calls. Returns all completed calls, or undefined as soon as the response must be streamed. */
  complete(): Awaitable<readonly CompletedCall<R>[] | undefined> {
    this.#startCalls();
    return this.#isDecided() ? this.#decision() : this.#awaitDecision();
  }

  /** Yields the response in request order. Throws if it exceeds the limit. */
  async *stream(): AsyncGenerator<Uint8Array> {
    this.#isStreamed = true;
    // They would keep the results that are sent.
    this.replies.length = 0;
    let isFirst = true;
    let consumed = 0;
    try {
      while (consumed < this.#slots.length) {
        const calls = await this.#takeSome(consumed);
        const parts = calls.map(formatCompleted).filter(({ length }) => length > 0);
        consumed += calls.length;
        yield* this.#partsOf(parts, isFirst);
        isFirst &&= parts.length === 0;
        this.#onSent(calls, consumed);
      }
      yield ARRAY_END;
    } finally {
      this.#stop(consumed);
    }
  }

  /** Yields responses, each after its separator. Small parts are joined, because each yield costs time. */
  async *#partsOf(responses: readonly (readonly Chunk[])[], isFirst: boolean): AsyncGenerator<Uint8Array> {
    let joined: Uint8Array[] = [];
    const chunks = responses.flatMap((parts, index) => [
      isFirst && index === 0 ? ARRAY_START : ARRAY_SEPARATOR,
      ...parts,
    ]);
    for (const chunk of chunks) {
      if (!isStream(chunk) && chunk.length <= MAX_PART_BYTES) {
        joined.push(chunk);
        continue;
      }
      yield Buffer.concat(joined);
      joined = [];
      yield* isStream(chunk) ? this.#counted(chunk) : [chunk];
    }
    if (joined.length > 0) {
      yield Buffer.concat(joined);
    }
  }

  #isDecided(): boolean {
    return this.#completed === this.#slots.length || this.#mustStream() || this.#failure !== undefined;
  }

  #mustStream(): boolean {
    return this.#hasStream || this.#unsentBytes > MAX_UNSENT_BYTES;
  }

  #decision(): readonly CompletedCall<R>[] | undefined {
    if (this.#failure !== undefined) {
      throw this.#failure.error;
    }
    return this.#mustStream() ? undefined : this.#slots.filter((slot) => slot !== undefined);
  }

  async #awaitDecision(): Promise<readonly CompletedCall<R>[] | undefined> {
    while (!this.#isDecided()) {
      await this.#nextProgress();
    }
    return this.#decision();
  }

  /** Returns the next completed calls, at least one: up to a stream, or to MAX_PART_BYTES of results. */
  async #takeSome(index: number): Promise<readonly CompletedCall<R>[]> {
    while (this.#slots[index] === undefined) {
      if (this.#failure !== undefined) {
        throw this.#failure.error;
      }
      await this.#nextProgress();
    }
    const calls: CompletedCall<R>[] = [];
    let bytes = 0;
    for (let at = index; bytes < MAX_PART_BYTES; at++) {
      const completed = this.#slots[at];
      if (completed === undefined) {
        break;
      }
      calls.push(completed);
      bytes += hasStream(completed) ? MAX_PART_BYTES : (heldBody(completed)?.length ?? 0);
    }
    return calls;
  }

  /** Starts no more calls, and discards the streams from slot `consumed` on: the client has disconnected. */
  #stop(consumed: number): void {
    this.#isStopped = true;
    for (const completed of this.#slots.slice(consumed)) {
      if (completed !== undefined) {
        void discardBody(completed);
      }
    }
  }

  /** Yields a stream. Throws if the response exceeds the limit with one of its parts. */
  async *#counted(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const part of stream) {
      this.#bytes += part.length;
      if (this.#bytes > this.#limits.maxResponseBytes) {
        throw tooLarge(this.#limits.maxResponseBytes);
      }
      yield part;
    }
  }

  #startCalls(): void {
    while (this.#canStart) {
      const index = this.#next;
      const item = this.#items[index];
      if (item === undefined) {
        return;
      }
      // Hot path: the clock of the turn and that of the call are read once.
      const nowMs = performance.now();
      if (this.#limits.turn.isOverAt(nowMs)) {
        this.#waitForTurn();
        return;
      }
      this.#next++;
      const completed = this.#run(item, nowMs);
      if (completed instanceof Promise) {
        this.#running++;
        this.#awaitCall(completed, index);
      } else {
        this.#onCompleted(completed, index);
      }
      if (this.#limits.isLarge && hasLargeParams(item)) {
        this.#waitForTurn();
        return;
      }
    }
  }

  get #canStart(): boolean {
    const isFull = this.#running >= this.#limits.concurrency || this.#unsentBytes > MAX_UNSENT_BYTES;
    return !(isFull || this.#waitsForTurn || this.#isStopped);
  }

  /** Starts the other calls in the next turn of the event loop. */
  #waitForTurn(): void {
    this.#waitsForTurn = true;
    setImmediate(() => {
      this.#waitsForTurn = false;
      this.#startCalls();
      this.#notify();
    });
  }

  #awaitCall(call: Promise<CompletedCall<R>>, index: number): void {
    call
      .then((completed) => {
        this.#running--;
        this.#onCompleted(completed, index);
        this.#startCalls();
        this.#notify();
      })
      .catch((error: unknown) => {
        this.#failure = { error };
        this.#notify();
      });
  }

  /** Resolves at the next progress. */
  #nextProgress(): Promise<void> {
    this.#progress ??= Promise.withResolvers();
    return this.#progress.promise;
  }

  #notify(): void {
    if (this.#isStreamed || this.#isDecided()) {
      this.#progress?.resolve();
      this.#progress = undefined;
    }
  }

  #onCompleted(call: CompletedCall<R>, index: number): void {
    const completed = this.#enforceLimit(call);
    if (completed.reply !== undefined) {
      if (!this.#isStreamed) {
        this.replies.push(completed.reply);
      }
    } else if (completed.id !== undefined && completed.error !== undefined) {
      this.errors.push(completed.error);
    }
    this.#slots[index] = completed;
    this.#completed++;
    if (this.#isStopped) {
      void discardBody(completed);
    } else if (hasStream(completed)) {
      this.#hasStream = true;
      this.#running++;
    }
  }

  /** Forgets the calls that are sent, up to slot `end`, and starts those that waited for them. */
  #onSent(calls: readonly CompletedCall<R>[], end: number): void {
    for (const completed of calls) {
      const body = heldBody(completed);
      if (hasStream(completed)) {
        this.#running--;
      } else if (body !== undefined) {
        this.#unsentBytes -= body.length;
        this.#limits.memory?.drop(body);
      }
    }
    this.#slots.fill(undefined, end - calls.length, end);
    this.#startCalls();
    this.#notify();
  }

  /** Replaces a result that no longer fits into the response, or into the memory budget, by an error. */
  #enforceLimit(completed: CompletedCall<R>): CompletedCall<R> {
    const { id } = completed;
    const body = heldBody(completed);
    const { maxResponseBytes, memory } = this.#limits;
    if (body === undefined) {
      return completed;
    }
    if (this.#bytes + body.length > maxResponseBytes) {
      return { id, error: tooLarge(maxResponseBytes) };
    }
    if (memory?.hold(body) === false) {
      // One for all: an error without room for a thousand results would cost more time than they.
      this.#overBudget ??= overBudget();
      return { id, error: this.#overBudget };
    }
    this.#bytes += body.length;
    this.#unsentBytes += body.length;
    return completed;
  }
}

/** Returns the response of a batch that finds no room: an error for each of its calls. */
const refuseBatch = (items: readonly Item[]): DispatchResult<never> => {
  const error = overBudget();
  const { status, retryAfterSeconds } = error;
  const chunks = joinResponses(items.map(({ id }) => ({ id, error })));
  return { status, retryAfterSeconds, chunks, replies: [], errors: [error] };
};

/**
 * Runs the calls of a batch in parallel and returns the responses in request order (ethers 5 matches by position).
 * A streamed result counts as running until it is written, so that few streams are open.
 * A large response is streamed too, and its later calls start as its results are read.
 */
export const runBatch = <R extends Reply>(
  items: readonly Item[],
  run: RunItem<R>,
  limits: BatchLimits,
): Awaitable<DispatchResult<R>> => {
  const { memory, concurrency } = limits;
  const { length } = items;
  if (length > UNCOUNTED_CALLS && memory?.holdCalls(length, Math.min(length, concurrency)) === false) {
    return refuseBatch(items);
  }
  const batch = new Batch(items, run, limits);
  return whenKnown(batch.complete(), (completed): DispatchResult<R> => {
    const { replies, errors } = batch;
    if (completed === undefined) {
      return { status: 200, chunks: [batch.stream()], replies: [...replies], errors };
    }
    const chunks = joinResponses(completed);
    return chunks.length === 0 ? noContent : { status: 200, chunks, replies, errors };
  });
};
