import { type Awaitable, whenKnown } from "./awaitable.ts";
import type { Reply } from "./call.ts";
import {
  ARRAY_END,
  ARRAY_START,
  COMMA,
  type CompletedCall,
  discardBody,
  formatCompleted,
  hasStream,
  joinResponses,
} from "./completedCall.ts";
import { type DispatchResult, noContent } from "./dispatchResult.ts";
import type { Item } from "./envelope.ts";
import { isStream } from "./formatResponse.ts";
import { tooLarge } from "./responseStream.ts";
import type { RpcError } from "./rpcError.ts";

export interface BatchLimits {
  /** Calls in flight at a time. */
  readonly concurrency: number;
  /** Limit for the results of one batch. */
  readonly maxResponseBytes: number;
}

/**
 * One batch in flight. Each call has a slot in request order for its completed call.
 * Calls that complete at once need no promise.
 */
class Batch<R extends Reply> {
  readonly replies: R[] = [];
  readonly errors: RpcError[] = [];
  readonly #items: readonly Item[];
  readonly #run: (item: Item) => Awaitable<CompletedCall<R>>;
  readonly #limits: BatchLimits;
  readonly #slots: (CompletedCall<R> | undefined)[];
  #bytes = 0;
  #next = 0;
  #running = 0;
  #completed = 0;
  #hasStream = false;
  #isStopped = false;
  #failure: { readonly error: unknown } | undefined;
  /** The response is being streamed. Each completed call is then progress. If not, only the decision is. */
  #isStreamed = false;
  #progress: PromiseWithResolvers<void> | undefined;

  constructor(items: readonly Item[], run: (item: Item) => Awaitable<CompletedCall<R>>, limits: BatchLimits) {
    this.#items = items;
    this.#run = run;
    this.#limits = limits;
    this.#slots = items.map(() => undefined);
  }

  /** Runs the calls. Returns all completed calls, or undefined as soon as one of them is a stream. */
  complete(): Awaitable<readonly CompletedCall<R>[] | undefined> {
    this.#startCalls();
    return this.#isDecided() ? this.#decision() : this.#awaitDecision();
  }

  /** Yields the response, call by call in request order. Throws if it exceeds the limit. */
  async *stream(): AsyncGenerator<Uint8Array> {
    this.#isStreamed = true;
    let separator = ARRAY_START;
    let consumed = 0;
    try {
      while (consumed < this.#slots.length) {
        const completed = await this.#take(consumed);
        consumed++;
        const chunks = formatCompleted(completed);
        if (chunks.length === 0) {
          continue;
        }
        yield separator;
        separator = COMMA;
        for (const chunk of chunks) {
          if (!isStream(chunk)) {
            yield chunk;
          } else {
            for await (const part of chunk) {
              this.#countStreamed(part);
              yield part;
            }
          }
        }
        if (hasStream(completed)) {
          this.#release();
        }
      }
      yield ARRAY_END;
    } finally {
      this.#stop(consumed);
    }
  }

  #isDecided(): boolean {
    return this.#completed === this.#slots.length || this.#hasStream || this.#failure !== undefined;
  }

  #decision(): readonly CompletedCall<R>[] | undefined {
    if (this.#failure !== undefined) {
      throw this.#failure.error;
    }
    return this.#hasStream ? undefined : this.#slots.filter((slot) => slot !== undefined);
  }

  async #awaitDecision(): Promise<readonly CompletedCall<R>[] | undefined> {
    while (!this.#isDecided()) {
      await this.#nextProgress();
    }
    return this.#decision();
  }

  /** Returns a completed call when it is known. */
  async #take(index: number): Promise<CompletedCall<R>> {
    for (;;) {
      const completed = this.#slots[index];
      if (completed !== undefined) {
        return completed;
      }
      if (this.#failure !== undefined) {
        throw this.#failure.error;
      }
      await this.#nextProgress();
    }
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

  /** Throws if the response exceeds the limit with this part. */
  #countStreamed({ length }: Uint8Array): void {
    this.#bytes += length;
    if (this.#bytes > this.#limits.maxResponseBytes) {
      throw tooLarge(this.#limits.maxResponseBytes);
    }
  }

  #startCalls(): void {
    while (this.#running < this.#limits.concurrency && !this.#isStopped) {
      const index = this.#next;
      const item = this.#items[index];
      if (item === undefined) {
        return;
      }
      this.#next++;
      const completed = this.#run(item);
      if (completed instanceof Promise) {
        this.#running++;
        this.#awaitCall(completed, index);
      } else {
        this.#onCompleted(completed, index);
      }
    }
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
      this.replies.push(completed.reply);
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

  /** Ends the call of a stream that is written. */
  #release(): void {
    this.#running--;
    this.#startCalls();
    this.#notify();
  }

  /** Replaces a result that no longer fits into the response by an error. */
  #enforceLimit(completed: CompletedCall<R>): CompletedCall<R> {
    const { id, body } = completed;
    const { maxResponseBytes } = this.#limits;
    if (id === undefined || body === undefined || isStream(body)) {
      return completed;
    }
    if (this.#bytes + body.length > maxResponseBytes) {
      return { id, error: tooLarge(maxResponseBytes) };
    }
    this.#bytes += body.length;
    return completed;
  }
}

/**
 * Runs the calls of a batch in parallel and returns the responses in request order (ethers 5 matches by position).
 * A streamed result counts as running until it is written, so that few streams are open.
 */
export const runBatch = <R extends Reply>(
  items: readonly Item[],
  run: (item: Item) => Awaitable<CompletedCall<R>>,
  limits: BatchLimits,
): Awaitable<DispatchResult<R>> => {
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
