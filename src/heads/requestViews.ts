import { Context, type InboundRequest } from "../core/context.ts";
import { isAtLeast } from "../core/grade.ts";
import type { CurrentHeads, FollowedHeads, Heads } from "../core/heads.ts";
import { timeoutSignal } from "../core/lazySignal.ts";
import type { PendingChange, View } from "../core/view.ts";
import { larger } from "../ethereum/bigintOrder.ts";
import { asBuffer } from "../json/jsonBytes.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import { CODES, invalidRequest, RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import type { Metrics } from "../telemetry/telemetry.ts";
import type { HeadsBehind } from "./headsBehind.ts";
import type { HeadTracker } from "./headTracker.ts";
import { formatPosition, isOlder, parsePosition, positionOf, type ViewPosition } from "./viewPosition.ts";

/** The views of a chain with their pending blocks. */
export interface CurrentViews {
  /** Returns the current view. Throws RpcError (503) before the first head. */
  view(): View;
  subscribe(listener: (change: PendingChange) => void): () => void;
  /** Records that a client has named `pending`: whether a node builds such a block is read only then. */
  markPendingRead(): void;
}

export interface RequestViewsOptions {
  /** Name of the chain, for metrics. */
  readonly chain: string;
  readonly heads: FollowedHeads & Pick<HeadTracker, "next" | "reach">;
  readonly views: CurrentViews;
  readonly behind: Pick<HeadsBehind, "find" | "view">;
  /** Deadline of a request. */
  readonly timeoutMs: number;
  /** Header that bypasses the cache. */
  readonly bypassHeader: string | undefined;
  /** The longest wait for a view that a client has seen elsewhere. */
  readonly minViewWaitMs: number;
  readonly metrics: Pick<Metrics, "minViews">;
}

export const noHead = (chain: string): RpcError =>
  unavailable(`chain "${chain}": no upstream node has reported a head yet`);

/** Returns the view without pending blocks. Throws RpcError (503) before the first head. */
export const sealedView = (chain: string, heads: CurrentHeads): View => {
  const current = heads.current();
  if (current === undefined) {
    throw noHead(chain);
  }
  return { heads: current };
};

const PENDING = Buffer.from('"pending"');

/** A backfill of the newest blocks takes less. */
const BACKFILL_MS = 3_000;

/** The number of blocks that must be above a block before the request's client sees it. */
const confirmationsOf = ({ caller }: Pick<InboundRequest, "caller">): number => caller.confirmations ?? 0;

/** Returns the oldest view that the client accepts. Undefined: any. Throws RpcError (400). */
const minViewOf = ({ received: { asked } }: InboundRequest): ViewPosition | undefined => {
  if (asked.minView === undefined) {
    return undefined;
  }
  const position = parsePosition(asked.minView);
  if (position === undefined) {
    throw invalidRequest("x-forebay-min-view must be a value of x-forebay-view", 400);
  }
  return position;
};

/** The views that requests of one chain get, as their headers and their keys want them. */
export class RequestViews {
  readonly #options: RequestViewsOptions;

  /** The number of the newest block of a branch that was replaced by a lower one. Undefined once the new branch is as high. */
  #replaced: bigint | undefined;

  constructor(options: RequestViewsOptions) {
    this.#options = options;
    // It ends with the heads.
    options.heads.subscribe(({ heads: { latest }, from }) => {
      const top = from.at(-1)?.number ?? this.#replaced;
      this.#replaced = top !== undefined && latest.number < top ? top : undefined;
    });
  }

  /** Takes the view of a request. Undefined before the first head. Throws RpcError without the wanted block. */
  contextOf(request: InboundRequest): Context | undefined {
    const { heads, views, behind, timeoutMs, bypassHeader } = this.#options;
    if (heads.current() === undefined) {
      return undefined;
    }
    const actual = views.view();
    const deadlineMs = performance.now() + timeoutMs;
    const { caller, received } = request;
    const bypassCache = bypassHeader !== undefined && received.headers[bypassHeader] !== undefined;
    const needs = isAtLeast(received.asked.needs, caller.needs ?? "stated") ? received.asked.needs : caller.needs;
    const confirmations = confirmationsOf(request);
    return confirmations === 0
      ? new Context(request, actual, deadlineMs, { bypassCache, needs })
      : new Context(request, behind.view(actual.heads, confirmations), deadlineMs, {
          ...{ bypassCache, needs, behind: { confirmations, actual } },
        });
  }

  /** Records whether the calls of a body name `pending`. A match in the data of a call does no harm. */
  recordCalls(body: Uint8Array): void {
    if (asBuffer(body).includes(PENDING)) {
      this.#options.views.markPendingRead();
    }
  }

  /** Waits until the blocks that the client's confirmations need are read, as after a start. Undefined if they are. */
  untilKnown(request: InboundRequest): Promise<void> | undefined {
    const { heads, behind } = this.#options;
    const confirmations = confirmationsOf(request);
    const current = heads.current();
    return confirmations === 0 || current === undefined || behind.find(current, confirmations) !== undefined
      ? undefined
      : this.#backfilled(current, confirmations);
  }

  /**
   * Waits until the view of a request is as new as its client wants. Returns the error of a view that stays older; undefined if
   * there is nothing to wait for. Throws RpcError for an invalid header. A request that has waited is already counted.
   */
  untilNewEnough(request: InboundRequest, hasWaited: boolean): Awaitable<RpcError | undefined> {
    const wanted = minViewOf(request);
    if (wanted === undefined) {
      return undefined;
    }
    const state = this.#compare(request, wanted);
    if (state === "behind") {
      return this.#reach(request, wanted);
    }
    if (!hasWaited) {
      this.#count(state);
    }
    return state === "reorged" ? this.#tooOld(request, wanted, true) : undefined;
  }

  #compare(request: InboundRequest, wanted: ViewPosition): "current" | "behind" | "reorged" {
    const position = this.#positionOf(request);
    if (position === undefined || !isOlder(position, wanted)) {
      return "current";
    }
    return this.#replaced !== undefined && wanted.head <= this.#replaced ? "reorged" : "behind";
  }

  /** Returns the position of the view that the request would get. Undefined if it gets none. */
  #positionOf(request: InboundRequest): ViewPosition | undefined {
    const { heads, views, behind } = this.#options;
    const current = heads.current();
    const confirmations = confirmationsOf(request);
    const view = current && (confirmations === 0 ? views.view() : behind.find(current, confirmations));
    return view && positionOf(view);
  }

  async #reach(request: InboundRequest, wanted: ViewPosition): Promise<RpcError | undefined> {
    const { heads, views, minViewWaitMs } = this.#options;
    const { promise, resolve } = Promise.withResolvers<void>();
    let state: "current" | "behind" | "reorged" = "behind";
    const check = (): void => {
      state = this.#compare(request, wanted);
      if (state !== "behind") {
        resolve();
      }
    };
    const stops = [views.subscribe(check), heads.subscribe(check)];
    const timer = setTimeout(resolve, minViewWaitMs);
    await promise;
    clearTimeout(timer);
    for (const stop of stops) {
      stop();
    }
    // The newest change may still be in the queue of listeners.
    state = this.#compare(request, wanted);
    this.#count(state === "current" ? "waited" : state);
    return state === "current" ? undefined : this.#tooOld(request, wanted, state === "reorged");
  }

  #count(outcome: "current" | "waited" | "behind" | "reorged"): void {
    this.#options.metrics.minViews.inc({ chain: this.#options.chain, outcome });
  }

  #tooOld(request: InboundRequest, wanted: ViewPosition, reorged: boolean): RpcError {
    const own = this.#positionOf(request);
    const view = own && formatPosition(own);
    const reason = reorged ? "a reorganisation replaced it" : "it is not known here yet";
    return new RpcError(CODES.SERVER, `the view ${formatPosition(wanted)} cannot be served: ${reason}`, {
      data: { view, ...(reorged && { reorged }) },
    });
  }

  async #backfilled(current: Heads, confirmations: number): Promise<void> {
    const { heads, behind } = this.#options;
    const signal = timeoutSignal(BACKFILL_MS);
    for (let known = current; behind.find(known, confirmations) === undefined && !signal.aborted; ) {
      const number = larger(known.latest.number - BigInt(confirmations), 0n);
      void heads.reach({ from: number, to: number });
      // After the timeout, the request is refused.
      known = await heads.next(signal).then(
        (change) => change.heads,
        () => known,
      );
    }
  }
}
