import type { Reply } from "./call.ts";
import { NULL_ID } from "./envelope.ts";
import { type Chunk, formatErrorResponse } from "./formatResponse.ts";
import type { RpcError } from "./rpcError.ts";

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
