import { type Caller, ownContext } from "../core/context.ts";
import type { Grade } from "../core/grade.ts";
import type { View } from "../core/view.ts";
import { createCall } from "../jsonrpc/call.ts";
import { readWhole } from "../jsonrpc/response.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { Handlers } from "./handlers.ts";

export interface InternalCallOptions {
  readonly handlers: Handlers;
  /** Returns the current view. Throws until a node has reported a head. */
  view(): View;
  /** Reads pending blocks too. Otherwise only sealed blocks are read, even if a pending block has the same hash. */
  readonly atPending?: true;
  /** See `Context`. */
  readonly needs?: Grade;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Creates the call function of subscriptions. Its calls are handled like a client's: by the method table, through the
 * cache.
 * It returns the JSON text of the result, and rejects with RpcError.
 */
export const internalCall =
  ({ handlers, view, atPending, needs, timeoutMs, signal }: InternalCallOptions) =>
  async (method: string, params: readonly unknown[], caller?: Caller): Promise<Uint8Array> => {
    const handle = handlers.lookup(method);
    if (handle === undefined) {
      throw new RpcError(CODES.METHOD_NOT_FOUND, `the method ${method} is not in the method table`);
    }
    const deadlineMs = performance.now() + timeoutMs;
    const actual = view();
    const current = atPending ? actual : { heads: actual.heads };
    const context = ownContext("subscriptions", current, { signal, deadlineMs, caller, needs });
    const { body } = await handle(createCall(method, params), context);
    return readWhole(body);
  };
