import type { View } from "../core/view.ts";
import { createCall } from "../jsonrpc/call.ts";
import { isStream } from "../jsonrpc/formatResponse.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { Handlers } from "../methods/handlers.ts";

export interface InternalCallOptions {
  readonly handlers: Handlers;
  /** Returns the current view. Throws until a node has reported a head. */
  view(): View;
  /** Reads pending blocks too. Otherwise only sealed blocks are read, even if a pending block has the same hash. */
  readonly atPending?: true;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Creates the call function of subscriptions. Its calls are handled like a client's: by the method table, through the
 * cache.
 * It returns the JSON text of the result, and rejects with RpcError.
 */
export const internalCall =
  ({ handlers, view, atPending, timeoutMs, signal }: InternalCallOptions) =>
  async (method: string, params: readonly unknown[]): Promise<Uint8Array> => {
    const handle = handlers.lookup(method);
    if (handle === undefined) {
      throw new RpcError(CODES.METHOD_NOT_FOUND, `the method ${method} is not in the method table`);
    }
    const { body } = await handle(createCall(method, params), {
      view: atPending ? view() : { heads: view().heads },
      deadlineMs: performance.now() + timeoutMs,
      clientId: "subscriptions",
      bypassCache: false,
      signal,
    });
    if (!isStream(body)) {
      return body;
    }
    const chunks: Uint8Array[] = [];
    for await (const chunk of body) {
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  };
