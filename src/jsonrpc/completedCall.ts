import type { Reply } from "./call.ts";
import { type Chunk, formatErrorResponse, formatResult, isStream } from "./formatResponse.ts";
import { discardStream } from "./responseStream.ts";
import { CODES, RpcError } from "./rpcError.ts";

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
