import type { View } from "../core/view.ts";
import { createCall } from "../jsonrpc/call.ts";
import { isStream } from "../jsonrpc/formatResponse.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { Handlers } from "../methods/handlers.ts";

export interface InternalCallOptions {
  readonly handlers: Handlers;
  /** Throws while no node has told its head. */
  view(): View;
  /** Reads what is pending too. Else what is sealed is meant, even where a pending block has the same hash. */
  readonly atPending?: true;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** What is asked for subscribers is answered like any caller's question: by the table, through the cache. The text of its result. */
export const internalCall =
  ({ handlers, view, atPending, timeoutMs, signal }: InternalCallOptions) =>
  async (method: string, params: readonly unknown[]): Promise<Uint8Array> => {
    const handle = handlers.lookup(method);
    if (handle === undefined) throw new RpcError(CODES.METHOD_NOT_FOUND, `the method ${method} is not known`);
    const { body } = await handle(createCall(method, params), {
      view: atPending ? view() : { heads: view().heads },
      deadlineMs: performance.now() + timeoutMs,
      clientId: "subscriptions",
      bypassCache: false,
      signal,
    });
    if (!isStream(body)) return body;
    const chunks: Uint8Array[] = [];
    for await (const chunk of body) chunks.push(chunk);
    return Buffer.concat(chunks);
  };
