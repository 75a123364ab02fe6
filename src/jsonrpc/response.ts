import type { Reply } from "./call.ts";
import { NULL_ID } from "./envelope.ts";
import { CODES, RpcError } from "./rpcError.ts";

/** Part of a response body: bytes, or a stream that is read after the parts before it. */
export type Chunk = Uint8Array | AsyncIterable<Uint8Array>;

const HEAD = Buffer.from('{"jsonrpc":"2.0","id":');
const RESULT = Buffer.from(',"result":');
const ERROR = Buffer.from(',"error":');
const END = Buffer.from("}");

export const isStream = (chunk: Chunk): chunk is AsyncIterable<Uint8Array> => !(chunk instanceof Uint8Array);

/** Whether no chunk is a stream. */
export const isWhole = (chunks: readonly Chunk[]): chunks is readonly Uint8Array[] => !chunks.some(isStream);

/** Formats a success response. The result's bytes are inserted unchanged. */
const formatResult = (id: Uint8Array, body: Chunk): readonly Chunk[] => [HEAD, id, RESULT, body, END];

const formatError = ({ code, message, data, text }: RpcError): Uint8Array =>
  text ?? Buffer.from(JSON.stringify({ code, message, data }));

/** Formats an error response. The text of a node's error is inserted unchanged. */
const formatErrorResponse = (id: Uint8Array, error: RpcError): readonly Uint8Array[] => [
  HEAD,
  id,
  ERROR,
  formatError(error),
  END,
];

/** A completed call: a reply with the body to write for it, or an error. */
export interface CompletedCall<R extends Reply> {
  readonly id: Uint8Array | undefined;
  readonly reply?: R | undefined;
  readonly body?: Chunk | undefined;
  readonly error?: RpcError | undefined;
}

/** Up to this size, a response is copied into one buffer. */
export const MAX_JOINED_BYTES = 4 * 1024 * 1024;

export const ARRAY_START = Buffer.from("[");
export const ARRAY_SEPARATOR = Buffer.from(",");
export const ARRAY_END = Buffer.from("]");

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

/** Whether the response to the call is streamed. */
export const hasStream = <R extends Reply>({ id, body }: CompletedCall<R>): boolean =>
  id !== undefined && body !== undefined && isStream(body);

/** Discards the stream of a call that nobody will read. */
export const discardBody = async <R extends Reply>({ body }: CompletedCall<R>): Promise<void> => {
  if (body !== undefined && isStream(body)) {
    await discardStream(body).catch(() => undefined);
  }
};

/** Returns the response to a batch without streams: one buffer, because each part costs more than its copy. */
export const joinResponses = <R extends Reply>(completed: readonly CompletedCall<R>[]): readonly Uint8Array[] => {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for (const call of completed) {
    const chunks = formatCompleted(call);
    if (chunks.length > 0) {
      parts.push(parts.length === 0 ? ARRAY_START : ARRAY_SEPARATOR);
    }
    for (const chunk of chunks) {
      if (!isStream(chunk)) {
        parts.push(chunk);
        bytes += chunk.length;
      }
    }
  }
  if (parts.length === 0) {
    return parts;
  }
  parts.push(ARRAY_END);
  return bytes <= MAX_JOINED_BYTES ? [Buffer.concat(parts)] : parts;
};

/** The response to one request body. */
export interface DispatchResult<R extends Reply> {
  /** HTTP status: 200 for a batch, that of the error for a single failed call. */
  readonly status: number;
  readonly retryAfterSeconds?: number | undefined;
  /** The response in order; empty for notifications (status 204). */
  readonly chunks: readonly Chunk[];
  /** The replies in the response. For a batch that streams: only those before its first byte. */
  readonly replies: readonly R[];
  /** The errors in the response. A batch that streams adds those of later calls before its end. */
  readonly errors: readonly RpcError[];
}

/** The response to notifications only (JSON-RPC 2.0, sections 4.1 and 6). */
export const noContent: DispatchResult<never> = { status: 204, chunks: [], replies: [], errors: [] };

/** Creates the response of a single error. The default id is `null`. */
export const errorResult = (
  error: RpcError,
  id: Uint8Array = NULL_ID,
): DispatchResult<never> & { readonly chunks: readonly Uint8Array[] } => ({
  status: error.status,
  retryAfterSeconds: error.retryAfterSeconds,
  chunks: formatErrorResponse(id, error),
  replies: [],
  errors: [error],
});

/** Creates the error of a response above the limit. */
export const tooLarge = (maxBytes: number): RpcError =>
  new RpcError(CODES.RESPONSE_TOO_LARGE, `response is larger than ${maxBytes} bytes`);

/**
 * Reads the first chunk of a stream, so that a failure before the first byte is still an error response.
 * A later error breaks the connection, so that an incomplete response does not parse.
 * Returns the whole stream. Rejects, then or later, with `tooLarge` above `maxBytes`.
 */
export const readFirstChunk = async (
  stream: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<AsyncIterable<Uint8Array>> => {
  const iterator = stream[Symbol.asyncIterator]();
  let first: IteratorResult<Uint8Array> | undefined = await iterator.next();
  let bytes = 0;
  const end = async (): Promise<IteratorReturnResult<undefined>> => {
    await iterator.return?.();
    return { done: true, value: undefined };
  };
  const counted = async (result: IteratorResult<Uint8Array>): Promise<IteratorResult<Uint8Array>> => {
    if (!result.done) {
      bytes += result.value.length;
    }
    if (bytes <= maxBytes) {
      return result;
    }
    await end();
    throw tooLarge(maxBytes);
  };
  first = await counted(first);
  const next = async (): Promise<IteratorResult<Uint8Array>> => {
    if (first === undefined) {
      return counted(await iterator.next());
    }
    const result = first;
    first = undefined;
    return result;
  };
  return { [Symbol.asyncIterator]: () => ({ next, return: end }) };
};

/** Returns a body as one buffer. Reads a stream to its end. */
export const readWhole = async (body: Chunk): Promise<Uint8Array> => {
  if (!isStream(body)) {
    return body;
  }
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) {
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
};

/** Discards a stream that nobody will read. Reads one chunk, because a generator that never ran does not clean up. */
export const discardStream = async (stream: AsyncIterable<Uint8Array>): Promise<void> => {
  for await (const _ of stream) {
    return;
  }
};

/** Counts what one request holds until its response is sent. */
export interface ResultMemory {
  /** Counts the calls of a batch, of which `running` are in flight at a time. Returns false if there is no room. */
  holdCalls(calls: number, running: number): boolean;
  /** Counts a result. Returns false if there is no room in the memory budget. A result counts once. */
  hold(result: Uint8Array): boolean;
  /** A result is sent. */
  drop(result: Uint8Array): void;
  /** Counts bytes of a response that waits as a whole. Returns false if there is no room. */
  holdResponse(bytes: number): boolean;
}
