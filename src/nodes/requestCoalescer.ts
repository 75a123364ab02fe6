import { deriveContext } from "../core/deriveContext.ts";
import { NodeError } from "../core/node.ts";
import { RETENTION } from "../core/retention.ts";
import type { NodeSource, RequestContext, RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import type { View } from "../core/view.ts";
import { asText } from "../json/asText.ts";
import { upstreamTimeout } from "../jsonrpc/rpcError.ts";

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

/** One client that waits for a shared response, up to its own deadline. */
class Waiter {
  readonly #response = Promise.withResolvers<RpcResponse>();
  readonly #signal: AbortSignal;
  readonly #timer: NodeJS.Timeout;
  readonly #onLeave: (waiter: Waiter) => void;
  readonly #onAbort = (): void => this.#leave(this.#signal.reason);

  constructor({ signal, deadlineMs }: RequestContext, onLeave: (waiter: Waiter) => void) {
    this.#signal = signal;
    this.#onLeave = onLeave;
    this.#timer = setTimeout(
      () => this.#leave(upstreamTimeout("no node answered in time")),
      Math.max(0, Math.ceil(deadlineMs - performance.now())),
    );
    signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  get response(): Promise<RpcResponse> {
    return this.#response.promise;
  }

  resolve(response: RpcResponse): void {
    this.#stop();
    this.#response.resolve(response);
  }

  reject(error: unknown): void {
    this.#stop();
    this.#response.reject(error);
  }

  #leave(reason: unknown): void {
    this.#onLeave(this);
    this.reject(reason);
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#signal.removeEventListener("abort", this.#onAbort);
  }
}

/** One request to the source, and the clients that wait for it. It is aborted when the last of them has left. */
class SharedRequest {
  /** Of the client that started it. */
  readonly deadlineMs: number;
  readonly #ending = new AbortController();
  readonly #waiting = new Set<Waiter>();
  readonly #onEnd: (request: SharedRequest) => void;

  /** `onEnd` is called when no further client may wait. */
  constructor(deadlineMs: number, onEnd: (request: SharedRequest) => void) {
    this.deadlineMs = deadlineMs;
    this.#onEnd = onEnd;
  }

  /** Must be called once. */
  send(source: NodeSource, rpcRequest: RpcRequest, context: RequestContext): void {
    source.request(rpcRequest, deriveContext(context, { signal: this.#ending.signal })).then(
      (response) => this.#end((waiter) => waiter.resolve(response)),
      (error: unknown) => this.#end((waiter) => waiter.reject(error)),
    );
  }

  wait(context: RequestContext): Promise<RpcResponse> {
    const waiter = new Waiter(context, (leaving) => this.#leave(leaving));
    this.#waiting.add(waiter);
    return waiter.response;
  }

  #end(settle: (waiter: Waiter) => void): void {
    this.#onEnd(this);
    this.#waiting.forEach(settle);
    this.#waiting.clear();
  }

  #leave(waiter: Waiter): void {
    this.#waiting.delete(waiter);
    if (this.#waiting.size === 0) {
      this.#onEnd(this);
      this.#ending.abort();
    }
  }
}

/** Coalesces identical reads that are in flight at the same time into one request to the source. */
export const coalesced = (source: NodeSource): NodeSource => {
  const inFlight = new Map<string, SharedRequest>();

  const start = (key: string, rpcRequest: RpcRequest, context: RequestContext): Promise<RpcResponse> => {
    const started = new SharedRequest(context.deadlineMs, (ended) => {
      if (inFlight.get(key) === ended) {
        inFlight.delete(key);
      }
    });
    inFlight.set(key, started);
    const response = started.wait(context);
    started.send(source, rpcRequest, context);
    return response;
  };

  const follow = async (
    shared: SharedRequest,
    rpcRequest: RpcRequest,
    context: RequestContext,
  ): Promise<RpcResponse> => {
    try {
      const response = await shared.wait(context);
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

  const request = (rpcRequest: RpcRequest, context: RequestContext): Promise<RpcResponse> => {
    if (!isShared(rpcRequest, context)) {
      return source.request(rpcRequest, context);
    }
    if (context.signal.aborted) {
      return Promise.reject(context.signal.reason);
    }
    const key = keyOf(rpcRequest, context.view);
    const shared = inFlight.get(key);
    return shared === undefined ? start(key, rpcRequest, context) : follow(shared, rpcRequest, context);
  };

  return { request };
};
