import type { Context } from "../core/context.ts";
import { abortReason, isAborted, isTimeout } from "../core/lazySignal.ts";
import { RETENTION } from "../core/retention.ts";
import type { NodeSource, RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import type { View } from "../core/view.ts";
import { SharedTask } from "../limits/sharedTask.ts";

/** A read that is never cached may have to see a write that was sent just before: it is not coalesced. */
const isCoalesced = (rpcRequest: RpcRequest, context: Context): boolean =>
  !rpcRequest.write && RETENTION[rpcRequest.retention].isCoalesced && !context.bypassCache;

/**
 * Requests whose response depends on the head are coalesced only within one head.
 * Otherwise a client could miss a new block, or a transaction that was sent after the first request.
 */
const keyOf = (
  { block, retention, nullIsError, canonicalParams, avoidedOrigins, excludedOrigins }: RpcRequest,
  { heads }: View,
): string => {
  const anchor = RETENTION[retention].boundTo === "view" ? heads.latest.hash : (block?.hash ?? block?.number);
  const key = `${retention} ${anchor ?? ""} ${nullIsError ? "!" : ""}${canonicalParams}`;
  if (excludedOrigins !== undefined) {
    return `${key} !${excludedOrigins.join(" ")}`;
  }
  return avoidedOrigins === undefined ? key : `${key} ${avoidedOrigins.join(" ")}`;
};

/** Coalesces identical reads that are in flight at the same time into one request to the source. */
export const coalesced = (source: NodeSource): NodeSource => {
  const inFlight = new Map<string, SharedTask<RpcResponse>>();

  const join = async (
    shared: SharedTask<RpcResponse>,
    rpcRequest: RpcRequest,
    context: Context,
  ): Promise<RpcResponse> => {
    try {
      const response = await shared.join(context);
      return { ...response, status: { ...response.status, collapsed: true } };
    } catch (error) {
      // The client that started the request had an earlier deadline than this one.
      if (isTimeout(error) && shared.deadlineMs < context.deadlineMs && performance.now() < context.deadlineMs) {
        return request(rpcRequest, context);
      }
      throw error;
    }
  };

  const request = (rpcRequest: RpcRequest, context: Context): Promise<RpcResponse> => {
    if (!isCoalesced(rpcRequest, context)) {
      return source.request(rpcRequest, context);
    }
    if (isAborted(context)) {
      return Promise.reject(abortReason(context));
    }
    const key = keyOf(rpcRequest, context.view);
    const shared = inFlight.get(key);
    if (shared !== undefined) {
      return join(shared, rpcRequest, context);
    }
    const own = new SharedTask<RpcResponse>(context, key, inFlight);
    return own.start(source.request(rpcRequest, context.with({ ending: own.ending })));
  };

  return { request };
};
