import { NodeError } from "../core/node.ts";
import { RETENTION } from "../core/retention.ts";
import type { NodeSource, RequestContext, RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import type { View } from "../core/view.ts";
import { asText } from "../json/asText.ts";
import { upstreamTimeout } from "../jsonrpc/rpcError.ts";

interface InFlightRequest {
  readonly response: Promise<RpcResponse>;
  readonly ending: AbortController;
  readonly deadlineMs: number;
  waiting: number;
  isComplete: boolean;
}

/** A read that is never cached may have to see a write that was sent just before: it is not coalesced. */
const isShared = (rpcRequest: RpcRequest, context: RequestContext): boolean =>
  !rpcRequest.write && RETENTION[rpcRequest.retention].isCoalesced && !context.bypassCache;

/**
 * Requests whose response depends on the head are coalesced only within one head.
 * Otherwise a client could miss a new block, or a transaction that was sent after the first request.
 */
const keyOf = (request: RpcRequest, { heads }: View): string => {
  const { method, params, paramsText, block, retention, nullIsError } = request;
  const anchor = RETENTION[retention].boundTo === "view" ? heads.latest.hash : block?.hash;
  const text = paramsText === undefined ? JSON.stringify(params) : asText(paramsText);
  return `${method} ${anchor ?? ""} ${nullIsError ? "!" : ""}${text}`;
};

/** Waits for the shared response, up to the deadline of this client. */
const waitFor = (response: Promise<RpcResponse>, { signal, deadlineMs }: RequestContext): Promise<RpcResponse> => {
  const { promise, resolve, reject } = Promise.withResolvers<RpcResponse>();
  const onAbort = (): void => reject(signal.reason);
  const timer = setTimeout(
    () => reject(upstreamTimeout("no node answered in time")),
    Math.max(0, Math.ceil(deadlineMs - performance.now())),
  );
  signal.addEventListener("abort", onAbort, { once: true });
  response.then(resolve, reject);
  return promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  });
};

/** Coalesces identical reads that are in flight at the same time into one request to the source. */
export const coalesced = (source: NodeSource): NodeSource => {
  const inFlight = new Map<string, InFlightRequest>();

  const remove = (key: string, request: InFlightRequest): void => {
    if (inFlight.get(key) === request) {
      inFlight.delete(key);
    }
  };

  const start = (key: string, rpcRequest: RpcRequest, context: RequestContext): InFlightRequest => {
    const ending = new AbortController();
    const response = source.request(rpcRequest, { ...context, signal: ending.signal });
    const started: InFlightRequest = {
      response,
      ending,
      deadlineMs: context.deadlineMs,
      waiting: 0,
      isComplete: false,
    };
    inFlight.set(key, started);
    const complete = (): void => {
      started.isComplete = true;
      remove(key, started);
    };
    response.then(complete, complete);
    return started;
  };

  const attach = async (key: string, shared: InFlightRequest, context: RequestContext): Promise<RpcResponse> => {
    shared.waiting += 1;
    try {
      return await waitFor(shared.response, context);
    } finally {
      shared.waiting -= 1;
      if (shared.waiting === 0) {
        // No further client may attach to a request that is about to be aborted.
        remove(key, shared);
        // A complete request needs no abort, which would create an exception with its stack.
        if (!shared.isComplete) {
          shared.ending.abort();
        }
      }
    }
  };

  const request = async (rpcRequest: RpcRequest, context: RequestContext): Promise<RpcResponse> => {
    if (!isShared(rpcRequest, context)) {
      return source.request(rpcRequest, context);
    }
    context.signal.throwIfAborted();
    const key = keyOf(rpcRequest, context.view);
    const shared = inFlight.get(key);
    if (!shared) {
      return attach(key, start(key, rpcRequest, context), context);
    }
    try {
      const response = await attach(key, shared, context);
      return { ...response, status: { ...response.status, collapsed: true } };
    } catch (error) {
      // The client that started the request had an earlier deadline than this one.
      const tooEarly = error instanceof NodeError && error.kind === "timeout" && shared.deadlineMs < context.deadlineMs;
      if (tooEarly && performance.now() < context.deadlineMs) {
        return request(rpcRequest, context);
      }
      throw error;
    }
  };

  return { request };
};
