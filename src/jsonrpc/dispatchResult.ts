import type { Reply } from "./call.ts";
import { NULL_ID } from "./envelope.ts";
import { type Chunk, formatErrorResponse } from "./formatResponse.ts";
import type { RpcError } from "./rpcError.ts";

/** The answer to one request body. */
export interface DispatchResult<R extends Reply> {
  /** HTTP status: a single call's error has its own, a batch is 200. */
  readonly status: number;
  readonly retryAfterSeconds?: number | undefined;
  /** The response in order; empty where nothing is to be answered (status 204). */
  readonly chunks: readonly Chunk[];
  /** The replies in it; of a batch that streams, those that were there before its first byte. */
  readonly replies: readonly R[];
  /** The errors that calls were answered with besides; of a batch that streams, as above. */
  readonly errors: readonly RpcError[];
}

/** The batch or the call held nothing but notifications (JSON-RPC 2.0 sections 4.1 and 6). */
export const noContent: DispatchResult<never> = { status: 204, chunks: [], replies: [], errors: [] };

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
