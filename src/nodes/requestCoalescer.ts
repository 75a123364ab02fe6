import type { Context } from "../core/context.ts";
import { abortReason, DeadlineSignal, isAborted, isTimeout, msUntil, offAbort, onAbort } from "../core/lazySignal.ts";
import { RETENTION } from "../core/retention.ts";
import type { NodeSource, RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import type { View } from "../core/view.ts";
import { upstreamTimeout } from "../jsonrpc/rpcError.ts";

/** A read that is never cached may have to see a write that was sent just before: it is not coalesced. */
const isShared = (rpcRequest: RpcRequest, context: Context): boolean =>
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

const tooLate = () => upstreamTimeout("no node answered in time");

/** One client that waits for a shared response, up to its own deadline. */
class Waiter {
  readonly #response = Promise.withResolvers<RpcResponse>();
  readonly #context: Context;
  readonly #shared: SharedRequest;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #onAbort = (): void => this.#cancel(abortReason(this.#context));

  constructor(context: Context, shared: SharedRequest) {
    this.#context = context;
    this.#shared = shared;
    // The shared request ends at its own deadline.
    if (context.deadlineMs < shared.deadlineMs) {
      this.#timer = setTimeout(() => this.#cancel(tooLate()), msUntil(context.deadlineMs));
    }
    onAbort(context, this.#onAbort);
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

  #cancel(reason: unknown): void {
    // First the reason: the end of the shared request would reject this client with its own.
    this.reject(reason);
    this.#shared.leave(this);
  }

  #stop(): void {
    clearTimeout(this.#timer);
    offAbort(this.#context, this.#onAbort);
  }
}

/**
 * One request to the source, and the clients that wait for it. It is aborted when the last of them has left, and at the
 * deadline of the client that started it.
 */
class SharedRequest {
  readonly deadlineMs: number;
  readonly #ending: DeadlineSignal;
  readonly #inFlight: Map<string, SharedRequest>;
  readonly #key: string;
  readonly #first: Waiter;
  /** The clients that joined. */
  #followers: Set<Waiter> | undefined;
  #waiting = 1;

  constructor(context: Context, key: string, inFlight: Map<string, SharedRequest>) {
    this.deadlineMs = context.deadlineMs;
    this.#ending = new DeadlineSignal(context.deadlineMs);
    this.#key = key;
    this.#inFlight = inFlight;
    // The first listener: the clients get this error, and not that of the node whose call is then ended.
    this.#ending.add(() => this.#fail(this.#ending.reason));
    this.#first = new Waiter(context, this);
    inFlight.set(key, this);
  }

  /** Must be called once, by the client that started it. */
  send(source: NodeSource, rpcRequest: RpcRequest, context: Context): Promise<RpcResponse> {
    source.request(rpcRequest, context.with({ ending: this.#ending })).then(
      (response) => {
        this.#end();
        this.#first.resolve(response);
        for (const waiter of this.#followers ?? []) {
          waiter.resolve(response);
        }
      },
      (error: unknown) => this.#fail(error),
    );
    return this.#first.response;
  }

  join(context: Context): Promise<RpcResponse> {
    const waiter = new Waiter(context, this);
    this.#followers ??= new Set();
    this.#followers.add(waiter);
    this.#waiting++;
    return waiter.response;
  }

  /** Records that a client has disconnected, or reached its own deadline. */
  leave(waiter: Waiter): void {
    this.#followers?.delete(waiter);
    this.#waiting--;
    if (this.#waiting === 0) {
      this.#end();
      this.#ending.abort();
    }
  }

  #fail(error: unknown): void {
    this.#end();
    this.#first.reject(error);
    for (const waiter of this.#followers ?? []) {
      waiter.reject(error);
    }
  }

  /** No further client may join. */
  #end(): void {
    this.#ending.end();
    if (this.#inFlight.get(this.#key) === this) {
      this.#inFlight.delete(this.#key);
    }
  }
}

/** Coalesces identical reads that are in flight at the same time into one request to the source. */
export const coalesced = (source: NodeSource): NodeSource => {
  const inFlight = new Map<string, SharedRequest>();

  const follow = async (shared: SharedRequest, rpcRequest: RpcRequest, context: Context): Promise<RpcResponse> => {
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
    if (!isShared(rpcRequest, context)) {
      return source.request(rpcRequest, context);
    }
    if (isAborted(context)) {
      return Promise.reject(abortReason(context));
    }
    const key = keyOf(rpcRequest, context.view);
    const shared = inFlight.get(key);
    return shared === undefined
      ? new SharedRequest(context, key, inFlight).send(source, rpcRequest, context)
      : follow(shared, rpcRequest, context);
  };

  return { request };
};
