import type { Context } from "../core/context.ts";
import { abortReason, isAborted, LazySignal, msUntilHalf, offAbort, onAbort } from "../core/lazySignal.ts";
import { NodeError } from "../core/node.ts";
import type { HedgeReason } from "../core/retryPolicy.ts";
import type { RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import { TokenBucket } from "../limits/tokenBucket.ts";
import type { Metrics } from "../telemetry/telemetry.ts";
import { isEmpty } from "../verification/responseBlock.ts";
import { isRetryable } from "./errorKind.ts";
import type { NodeHealth } from "./nodeHealth.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

/** Buckets for each doubling: a quantile is at most 19 % too high. */
const BUCKETS_PER_OCTAVE = 4;
/** The last bucket begins at 65 s. */
const BUCKETS = 64;
/** With this many values, all counts are halved, so that old values lose their weight. */
const MAX_VALUES = 1_000;
const MIN_VALUES = 20;
/** The quantile is computed again after this many values. */
const UPDATE_EVERY = 16;

const bucketOf = (durationMs: number): number =>
  Math.min(BUCKETS - 1, Math.max(0, Math.ceil(Math.log2(Math.max(1, durationMs)) * BUCKETS_PER_OCTAVE)));

/** A quantile of the newest durations, in milliseconds. */
export class RecentQuantile {
  readonly #share: number;
  readonly #counts = new Uint32Array(BUCKETS);
  #values = 0;
  #sinceUpdate = 0;
  #quantileMs: number | undefined;

  /** `share` is 0.95 for the 95th percentile. */
  constructor(share: number) {
    this.#share = share;
  }

  /** Undefined before there are enough values. */
  get valueMs(): number | undefined {
    return this.#quantileMs;
  }

  record(durationMs: number): void {
    const bucket = bucketOf(durationMs);
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#values += 1;
    this.#sinceUpdate += 1;
    if (this.#values >= MAX_VALUES) {
      this.#halve();
    }
    if (this.#values >= MIN_VALUES && (this.#sinceUpdate >= UPDATE_EVERY || this.#quantileMs === undefined)) {
      this.#sinceUpdate = 0;
      this.#quantileMs = this.#compute();
    }
  }

  #halve(): void {
    this.#counts.forEach((count, bucket) => {
      this.#counts[bucket] = count >> 1;
    });
    this.#values = this.#counts.reduce((sum, count) => sum + count, 0);
  }

  /** The upper bound of the bucket with the quantile. */
  #compute(): number {
    let above = this.#values * (1 - this.#share);
    let bucket = BUCKETS - 1;
    while (bucket > 0 && above >= (this.#counts[bucket] ?? 0)) {
      above -= this.#counts[bucket] ?? 0;
      bucket -= 1;
    }
    return Math.ceil(2 ** (bucket / BUCKETS_PER_OCTAVE));
  }
}

export interface HedgeOptions {
  /** The shortest wait for the first node. The wait is its 95th percentile for the method, if that is longer. */
  readonly afterMs: number;
  /** Share of all reads that may be sent twice. */
  readonly maxShare: number;
}

/** A node, as hedges use it. */
interface HedgedNode extends Pick<UpstreamNode, "request" | "available"> {
  readonly health: Pick<NodeHealth, "recordLatencyAbove">;
}

const QUANTILE = 0.95;
/** Limit of the hedges that are saved while reads are fast. */
const MAX_SAVED_HEDGES = 100;

const hasContent = ({ body }: RpcResponse): boolean => !(body instanceof Uint8Array && isEmpty(body));

interface Attempt {
  readonly node: HedgedNode;
  readonly startedMs: number;
  readonly signal: LazySignal;
}

/**
 * Sends one read to one node, and later to others. The first response that is not empty wins. So does an error that every node would
 * return, and an empty response once the read is late.
 */
class Race {
  readonly #request: RpcRequest;
  readonly #context: Context;
  readonly #onDuration: (node: HedgedNode, durationMs: number) => void;
  readonly #result = Promise.withResolvers<RpcResponse>();
  readonly #running = new Set<Attempt>();
  readonly #onDisconnect = (): void => this.#abortAll(abortReason(this.#context));
  #empty: RpcResponse | undefined;
  #isLate = false;

  constructor(request: RpcRequest, context: Context, onDuration: (node: HedgedNode, durationMs: number) => void) {
    this.#request = request;
    this.#context = context;
    this.#onDuration = onDuration;
    onAbort(context, this.#onDisconnect);
  }

  get result(): Promise<RpcResponse> {
    return this.#result.promise;
  }

  start(node: HedgedNode, isMovable = false): void {
    const context = this.#context;
    // The owner of the context's signal ends it at the deadline, and this one with it.
    const signal = new LazySignal(context.lazySignal?.deadlineMs);
    const attempt = { node, startedMs: performance.now(), signal };
    this.#running.add(attempt);
    if (isAborted(context)) {
      signal.abort(abortReason(context));
    }
    node.request(this.#request, context.with({ ending: signal, isMovable })).then(
      (response) => this.#onResponse(attempt, response),
      (error: unknown) => this.#onError(attempt, error),
    );
  }

  /** From now on an empty response wins. Returns whether there is one. */
  markLate(): boolean {
    this.#isLate = true;
    if (this.#empty === undefined) {
      return false;
    }
    this.#result.resolve(this.#empty);
    return true;
  }

  /** Ends the requests that lost. The time until now is the least that they would have taken. */
  finish(): void {
    offAbort(this.#context, this.#onDisconnect);
    for (const { node, startedMs } of this.#running) {
      const elapsedMs = performance.now() - startedMs;
      node.health.recordLatencyAbove(elapsedMs);
      this.#onDuration(node, elapsedMs);
    }
    this.#abortAll();
  }

  #abortAll(reason?: unknown): void {
    for (const { signal } of this.#running) {
      signal.abort(reason);
    }
  }

  #onResponse(attempt: Attempt, response: RpcResponse): void {
    // After the end of the race, the attempt is already counted.
    if (!this.#running.delete(attempt)) {
      return;
    }
    this.#onDuration(attempt.node, performance.now() - attempt.startedMs);
    if (hasContent(response)) {
      this.#result.resolve(response);
      return;
    }
    this.#empty ??= response;
    if (this.#running.size === 0 || this.#isLate) {
      this.#result.resolve(this.#empty);
    }
  }

  /** An empty response wins only when no other attempt is in flight, and so does an error after which a read is retried. */
  #onError(attempt: Attempt, error: unknown): void {
    this.#running.delete(attempt);
    const isFinal = error instanceof NodeError && !isRetryable(error);
    if (this.#running.size > 0 && !isFinal) {
      return;
    }
    if (this.#empty) {
      this.#result.resolve(this.#empty);
    } else {
      this.#result.reject(error);
    }
  }
}

/** The nodes of one read. */
export interface ReadNodes<Each extends HedgedNode = UpstreamNode> {
  readonly first: Each;
  /** The node that the read may be hedged with. */
  readonly hedge: Each | undefined;
  /** The nodes that get the read if it is late, in this order. */
  readonly others: readonly Each[];
  /** The first node's error is free: see CallScope. */
  readonly isMovable?: boolean;
}

/**
 * Sends slow reads to another node too. A hedge is sent early, for a small share of all reads. A read is late after half of its
 * time. Then the next node gets it in any case, and the one after that after half of the remaining time.
 */
export class Hedge {
  readonly #chain: string;
  /** Undefined: no hedges. */
  readonly #options: HedgeOptions | undefined;
  readonly #metrics: Pick<Metrics, "upstreamHedges">;
  /** Durations by node and method. */
  readonly #durations = new Map<HedgedNode, Map<string, RecentQuantile>>();
  /** Hedges that the share of reads allows now. A start counts as a time without slow reads. */
  readonly #saved = new TokenBucket(MAX_SAVED_HEDGES, MAX_SAVED_HEDGES);

  constructor(chain: string, options: HedgeOptions | undefined, metrics: Pick<Metrics, "upstreamHedges">) {
    this.#chain = chain;
    this.#options = options;
    this.#metrics = metrics;
  }

  /** `startLate` returns whether a late read may be sent to this node. */
  async request<Each extends HedgedNode>(
    { first, hedge, others, isMovable }: ReadNodes<Each>,
    request: RpcRequest,
    context: Context,
    startLate: (node: Each) => boolean,
  ): Promise<RpcResponse> {
    const race = new Race(request, context, (node, durationMs) =>
      this.#quantileOf(node, request.method).record(durationMs),
    );
    race.start(first, isMovable);
    let timer: NodeJS.Timeout | undefined;
    const waitForHalf = (waiting: readonly Each[]): void => {
      const halfMs = msUntilHalf(context.deadlineMs);
      if (halfMs === Number.POSITIVE_INFINITY) {
        return;
      }
      timer = setTimeout(() => {
        const [next, ...rest] = waiting;
        // The timer may be late.
        if (!race.markLate() && next !== undefined && performance.now() < context.deadlineMs) {
          if (startLate(next)) {
            race.start(next);
          }
          waitForHalf(rest);
        }
      }, halfMs);
    };
    const wait = hedge && this.#waitOf(first, request.method);
    if (hedge !== undefined && wait !== undefined && wait.ms < msUntilHalf(context.deadlineMs)) {
      timer = setTimeout(() => {
        const isHedged = this.#take(hedge, wait.reason);
        if (isHedged) {
          race.start(hedge);
        }
        waitForHalf(isHedged ? others.filter((node) => node !== hedge) : others);
      }, wait.ms);
    } else {
      waitForHalf(others);
    }
    try {
      return await race.result;
    } finally {
      clearTimeout(timer);
      race.finish();
    }
  }

  /** Returns the time before a hedge. Undefined: the read is not hedged. */
  #waitOf(node: HedgedNode, method: string): { readonly ms: number; readonly reason: HedgeReason } | undefined {
    if (this.#options === undefined) {
      return undefined;
    }
    const { afterMs, maxShare } = this.#options;
    this.#saved.earn(maxShare);
    const quantileMs = this.#quantileOf(node, method).valueMs ?? 0;
    return quantileMs > afterMs ? { ms: quantileMs, reason: "quantile" } : { ms: afterMs, reason: "minimum" };
  }

  /** Returns whether the second node may get the read too. */
  #take(second: HedgedNode, reason: HedgeReason): boolean {
    if (!second.available || !this.#saved.take()) {
      return false;
    }
    this.#metrics.upstreamHedges.inc({ chain: this.#chain, reason });
    return true;
  }

  #quantileOf(node: HedgedNode, method: string): RecentQuantile {
    let methods = this.#durations.get(node);
    if (methods === undefined) {
      methods = new Map();
      this.#durations.set(node, methods);
    }
    let quantile = methods.get(method);
    if (quantile === undefined) {
      quantile = new RecentQuantile(QUANTILE);
      methods.set(method, quantile);
    }
    return quantile;
  }
}
