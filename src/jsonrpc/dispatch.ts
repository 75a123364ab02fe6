import { type CompletedCall, formatCompleted, runBatch } from "./batch.ts";
import type { Call, Reply } from "./call.ts";
import { type DispatchResult, errorResult, noContent } from "./dispatchResult.ts";
import { type Envelope, type Item, parseEnvelope } from "./envelope.ts";
import { type Chunk, isStream } from "./formatResponse.ts";
import { discardStream, readFirstChunk, tooLarge } from "./responseStream.ts";
import { CODES, RpcError } from "./rpcError.ts";

export type Handler<C, R extends Reply> = (call: Call, context: C) => Promise<R>;

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
  /** Handles methods that `lookup` does not know. */
  readonly forward: Handler<C, R>;
  readonly maxBatch: number;
  /** Limit of the whole response; `Infinity` for none. */
  readonly maxResponseBytes: number;
  /** Calls of one batch in flight at a time. */
  readonly concurrency?: number;
  onOutcome?(outcome: Outcome<C, R>): void;
  /** Called with errors that are not RpcError. The client gets only "Internal error". */
  onError(error: unknown, call: Call): void;
}

export type Dispatch<C, R extends Reply> = (body: Uint8Array, context: C) => Promise<DispatchResult<R>>;

const DEFAULT_CONCURRENCY = 64;

/** Creates the JSON-RPC 2.0 dispatcher. It turns a request body into calls, and their results into response bytes. */
export const createDispatch = <C, R extends Reply>(options: DispatchOptions<C, R>): Dispatch<C, R> => {
  const { forward, maxBatch, maxResponseBytes, concurrency = DEFAULT_CONCURRENCY } = options;

  const toRpcError = (error: unknown, call: Call): RpcError => {
    if (error instanceof RpcError) {
      return error;
    }
    options.onError(error, call);
    return new RpcError(CODES.INTERNAL, "Internal error");
  };

  const run = async (item: Item, context: C): Promise<CompletedCall<R>> => {
    if ("error" in item) {
      return item;
    }
    const { call, id } = item;
    const startMs = performance.now();
    let reply: R | undefined;
    let body: Chunk | undefined;
    let error: RpcError | undefined;
    try {
      const allowed = options.authorize?.(call, context);
      if (allowed !== undefined) {
        await allowed;
      }
      const handle = options.lookup(call.method) ?? forward;
      const handled = await handle(call, context);
      body = handled.body;
      if (isStream(body)) {
        body = await readFirstChunk(body, maxResponseBytes);
        if (id === undefined) {
          await discardStream(body);
        }
      } else if (body.length > maxResponseBytes) {
        throw tooLarge(maxResponseBytes);
      }
      reply = handled;
    } catch (thrown) {
      error = toRpcError(thrown, call);
    }
    options.onOutcome?.({ call, context, reply, error, seconds: (performance.now() - startMs) / 1000 });
    return { id, reply, body, error };
  };

  return async (bytes, context) => {
    let envelope: Envelope;
    try {
      envelope = parseEnvelope(bytes, maxBatch);
    } catch (error) {
      if (error instanceof RpcError) {
        return errorResult(error);
      }
      throw error;
    }
    const [first] = envelope.items;
    if (envelope.batch || first === undefined) {
      return runBatch(envelope.items, (item) => run(item, context), { concurrency, maxResponseBytes });
    }
    const completed = await run(first, context);
    const { id, reply, error } = completed;
    if (id === undefined) {
      return noContent;
    }
    if (error !== undefined) {
      return errorResult(error, id);
    }
    return { status: 200, chunks: formatCompleted(completed), replies: reply === undefined ? [] : [reply], errors: [] };
  };
};
