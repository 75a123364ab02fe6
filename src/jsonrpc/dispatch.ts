import { runBatch } from "./batch.ts";
import { type Awaitable, type Call, type Reply, whenKnown } from "./call.ts";
import { type Envelope, type Item, parseEnvelope } from "./envelope.ts";
import {
  type Chunk,
  type CompletedCall,
  type DispatchResult,
  discardStream,
  errorResult,
  formatCompleted,
  isStream,
  noContent,
  type ResultMemory,
  readFirstChunk,
  tooLarge,
} from "./response.ts";
import { CODES, RpcError } from "./rpcError.ts";
import { TurnClock } from "./turnClock.ts";

export type Handler<C, R extends Reply> = (call: Call, context: C) => Awaitable<R>;

/** The outcome of one call. Exactly one of `reply` and `error` is set. A stream is reported after its first chunk. */
export interface Outcome<C, R extends Reply> {
  readonly call: Call;
  readonly context: C;
  readonly reply: R | undefined;
  readonly error: RpcError | undefined;
  readonly seconds: number;
}

export interface DispatchOptions<C, R extends Reply> {
  lookup(method: string): Handler<C, R> | undefined;
  /** Throws or rejects with RpcError if the client may not make this call. */
  authorize?(call: Call, context: C): Promise<void> | undefined;
  /** Returns the context of one call. By default it is that of the request. */
  beginCall?(call: Call, context: C): C;
  /** Handles methods that `lookup` does not know. */
  readonly forward: Handler<C, R>;
  readonly maxBatch: number;
  /** Limit of the whole response; `Infinity` for none. */
  readonly maxResponseBytes: number;
  /** Calls of one batch in flight at a time. */
  readonly concurrency?: number;
  /** Returns the memory that counts the results of a batch until they are sent. Default: they are not counted. */
  memoryOf?(context: C): ResultMemory | undefined;
  /** Called for each request object that is not a call, and for a body that does not parse. */
  onInvalid?(context: C): void;
  onOutcome?(outcome: Outcome<C, R>): void;
  /** Called with errors that are not RpcError. The client gets only "Internal error". */
  onError(error: unknown, call: Call, context: C): void;
}

export type Dispatch<C, R extends Reply> = (body: Uint8Array, context: C) => Awaitable<DispatchResult<R>>;

const DEFAULT_CONCURRENCY = 64;

/** Parsing a larger body takes time from the turn of its calls. */
const LARGE_BYTES = 64 * 1024;

/** A request object that is a call. */
type ValidItem = Exclude<Item, { readonly error: RpcError }>;

/** One valid call, from its start to its outcome. */
class RunningCall<C, R extends Reply> {
  readonly #options: DispatchOptions<C, R>;
  readonly #item: ValidItem;
  readonly #context: C;
  readonly #startMs: number;

  constructor(options: DispatchOptions<C, R>, item: ValidItem, context: C, startMs: number) {
    this.#options = options;
    this.#item = item;
    this.#startMs = startMs;
    this.#context = options.beginCall === undefined ? context : options.beginCall(item.call, context);
  }

  /** Runs the call, and applies `finish` to its outcome. A call whose handler returns its reply at once is complete at once. */
  run<T>(finish: (completed: CompletedCall<R>) => T): Awaitable<T> {
    let reply: Awaitable<R>;
    try {
      reply = this.#handle();
    } catch (thrown) {
      return finish(this.#fail(thrown));
    }
    return reply instanceof Promise
      ? reply.then(
          (known) => whenKnown(this.#onReply(known), finish),
          (thrown: unknown) => finish(this.#fail(thrown)),
        )
      : whenKnown(this.#onReply(reply), finish);
  }

  #handle(): Awaitable<R> {
    const { lookup, forward, authorize } = this.#options;
    const { call } = this.#item;
    const allowed = authorize?.(call, this.#context);
    const handle = lookup(call.method) ?? forward;
    return allowed === undefined ? handle(call, this.#context) : allowed.then(() => handle(call, this.#context));
  }

  #onReply(reply: R): Awaitable<CompletedCall<R>> {
    const { body } = reply;
    const { maxResponseBytes } = this.#options;
    if (isStream(body)) {
      return this.#readStream(reply, body);
    }
    return body.length > maxResponseBytes ? this.#fail(tooLarge(maxResponseBytes)) : this.#complete(reply, body);
  }

  async #readStream(reply: R, stream: AsyncIterable<Uint8Array>): Promise<CompletedCall<R>> {
    let body: AsyncIterable<Uint8Array>;
    try {
      body = await readFirstChunk(stream, this.#options.maxResponseBytes);
      if (this.#item.id === undefined) {
        await discardStream(body);
      }
    } catch (thrown) {
      return this.#fail(thrown);
    }
    return this.#complete(reply, body);
  }

  #complete(reply: R, body: Chunk): CompletedCall<R> {
    this.#report(reply, undefined);
    return { id: this.#item.id, reply, body, error: undefined };
  }

  #fail(thrown: unknown): CompletedCall<R> {
    const error = this.#toRpcError(thrown);
    this.#report(undefined, error);
    return { id: this.#item.id, reply: undefined, body: undefined, error };
  }

  #toRpcError(error: unknown): RpcError {
    if (error instanceof RpcError) {
      return error;
    }
    this.#options.onError(error, this.#item.call, this.#context);
    return new RpcError(CODES.INTERNAL, "Internal error");
  }

  #report(reply: R | undefined, error: RpcError | undefined): void {
    const seconds = (performance.now() - this.#startMs) / 1000;
    this.#options.onOutcome?.({ call: this.#item.call, context: this.#context, reply, error, seconds });
  }
}

const unchanged = <T>(completed: T): T => completed;

/** Returns the response to a single call. */
const toResult = <R extends Reply>(completed: CompletedCall<R>): DispatchResult<R> => {
  const { id, reply, error } = completed;
  if (id === undefined) {
    return noContent;
  }
  if (error !== undefined) {
    return errorResult(error, id);
  }
  return { status: 200, chunks: formatCompleted(completed), replies: reply === undefined ? [] : [reply], errors: [] };
};

/**
 * Creates the JSON-RPC 2.0 dispatcher. It turns a request body into calls, and their results into response bytes.
 * It is synchronous if all calls of the body are.
 */
export const createDispatch = <C, R extends Reply>(options: DispatchOptions<C, R>): Dispatch<C, R> => {
  const { maxBatch, maxResponseBytes, concurrency = DEFAULT_CONCURRENCY } = options;
  const turn = new TurnClock();

  const run = <T>(
    item: Item,
    context: C,
    finish: (completed: CompletedCall<R>) => T,
    startMs = performance.now(),
  ): Awaitable<T> => {
    if ("error" in item) {
      options.onInvalid?.(context);
      return finish(item);
    }
    return new RunningCall(options, item, context, startMs).run(finish);
  };

  return (bytes, context) => {
    const isLarge = bytes.length > LARGE_BYTES;
    if (isLarge) {
      turn.begin();
    }
    let envelope: Envelope;
    try {
      envelope = parseEnvelope(bytes, maxBatch);
    } catch (error) {
      if (error instanceof RpcError) {
        options.onInvalid?.(context);
        return errorResult(error);
      }
      throw error;
    }
    const [first] = envelope.items;
    if (envelope.batch || first === undefined) {
      const limits = { concurrency, maxResponseBytes, turn, isLarge, memory: options.memoryOf?.(context) };
      return runBatch(envelope.items, (item, startMs) => run(item, context, unchanged, startMs), limits);
    }
    return run<DispatchResult<R>>(first, context, toResult);
  };
};
