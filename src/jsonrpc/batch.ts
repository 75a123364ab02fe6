import type { Reply } from "./call.ts";
import { type DispatchResult, noContent } from "./dispatchResult.ts";
import type { Item } from "./envelope.ts";
import { type Chunk, formatErrorResponse, formatResult, isStream } from "./formatResponse.ts";
import { discardStream, tooLarge } from "./responseStream.ts";
import { CODES, RpcError } from "./rpcError.ts";

/** A completed call: a reply with the body to write for it, or an error. */
export interface CompletedCall<R extends Reply> {
  readonly id: Uint8Array | undefined;
  readonly reply?: R | undefined;
  readonly body?: Chunk | undefined;
  readonly error?: RpcError | undefined;
}

export interface BatchLimits {
  /** Calls in flight at a time. */
  readonly concurrency: number;
  /** Limit for the results of one batch. */
  readonly maxResponseBytes: number;
}

const OPEN = Buffer.from("[");
const COMMA = Buffer.from(",");
const CLOSE = Buffer.from("]");

/** Formats the response to one call. Returns an empty list for a notification. */
export const formatCompleted = <R extends Reply>({ id, body, error }: CompletedCall<R>): readonly Chunk[] => {
  if (id === undefined) {
    return [];
  }
  if (body !== undefined && error === undefined) {
    return formatResult(id, body);
  }
  return formatErrorResponse(id, error ?? new RpcError(CODES.INTERNAL, "Internal error"));
};

const hasStream = <R extends Reply>({ id, body }: CompletedCall<R>): boolean =>
  id !== undefined && body !== undefined && isStream(body);

/** Discards the stream of a call that nobody will read. The error of a call that failed has no reader either. */
const discardBody = <R extends Reply>(call: Promise<CompletedCall<R>>): Promise<void> =>
  call.then(
    async ({ body }) => {
      if (body !== undefined && isStream(body)) {
        await discardStream(body).catch(() => undefined);
      }
    },
    () => undefined,
  );

/** One batch in flight. Each call has a slot in request order, which its completed call resolves. */
class Batch<R extends Reply> {
  readonly replies: R[] = [];
  readonly errors: RpcError[] = [];
  readonly #items: readonly Item[];
  readonly #run: (item: Item) => Promise<CompletedCall<R>>;
  readonly #limits: BatchLimits;
  readonly #slots: readonly PromiseWithResolvers<CompletedCall<R>>[];
  /** Resolved by the first call whose result is a stream. */
  readonly #streamed = Promise.withResolvers<void>();
  #bytes = 0;
  #next = 0;
  #running = 0;
  #isStopped = false;

  constructor(items: readonly Item[], run: (item: Item) => Promise<CompletedCall<R>>, limits: BatchLimits) {
    this.#items = items;
    this.#run = run;
    this.#limits = limits;
    this.#slots = items.map(() => Promise.withResolvers<CompletedCall<R>>());
  }

  /** Resolves with all completed calls, or with undefined as soon as one of them is a stream. */
  async complete(): Promise<readonly CompletedCall<R>[] | undefined> {
    this.#startCalls();
    const all = Promise.all(this.#slots.map(({ promise }) => promise));
    const completed = await Promise.race([all, this.#streamed.promise]);
    // The reader of the stream gets a failure from the slot itself.
    if (completed === undefined) {
      all.catch(() => undefined);
    }
    return completed ?? undefined;
  }

  /** Yields the response, call by call in request order. Throws if it exceeds the limit. */
  async *stream(): AsyncGenerator<Uint8Array> {
    let separator = OPEN;
    let consumed = 0;
    try {
      for (const { promise } of this.#slots) {
        const completed = await promise;
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
      yield CLOSE;
    } finally {
      this.#stop(consumed);
    }
  }

  /** Starts no more calls, and discards the started ones from slot `consumed` on: the client has disconnected. */
  #stop(consumed: number): void {
    this.#isStopped = true;
    for (const { promise } of this.#slots.slice(consumed, this.#next)) {
      void discardBody(promise);
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
      const item = this.#items[this.#next];
      const slot = this.#slots[this.#next];
      if (item === undefined || slot === undefined) {
        return;
      }
      this.#next++;
      this.#running++;
      this.#runCall(item, slot).catch(slot.reject);
    }
  }

  async #runCall(item: Item, slot: PromiseWithResolvers<CompletedCall<R>>): Promise<void> {
    const completed = this.#enforceLimit(await this.#run(item));
    if (completed.reply !== undefined) {
      this.replies.push(completed.reply);
    } else if (completed.id !== undefined && completed.error !== undefined) {
      this.errors.push(completed.error);
    }
    slot.resolve(completed);
    if (hasStream(completed)) {
      this.#streamed.resolve();
    } else {
      this.#release();
    }
  }

  #release(): void {
    this.#running--;
    this.#startCalls();
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
export const runBatch = async <R extends Reply>(
  items: readonly Item[],
  run: (item: Item) => Promise<CompletedCall<R>>,
  limits: BatchLimits,
): Promise<DispatchResult<R>> => {
  const batch = new Batch(items, run, limits);
  const completed = await batch.complete();
  const { replies, errors } = batch;
  if (completed === undefined) {
    return { status: 200, chunks: [batch.stream()], replies: [...replies], errors: [...errors] };
  }
  const responses = completed.map(formatCompleted).filter((chunks) => chunks.length > 0);
  if (responses.length === 0) {
    return noContent;
  }
  return {
    status: 200,
    chunks: [...responses.flatMap((chunks, index) => [index === 0 ? OPEN : COMMA, ...chunks]), CLOSE],
    replies,
    errors,
  };
};
