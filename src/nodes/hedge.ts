import type { Context } from "../core/context.ts";
import { abortReason, isAborted, LazySignal, offAbort, onAbort } from "../core/lazySignal.ts";
import type { HedgeReason } from "../core/retryPolicy.ts";
import type { RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import { TokenBucket } from "../limits/tokenBucket.ts";
import type { Metrics } from "../telemetry/telemetry.ts";
import { isEmpty } from "../verification/responseBlock.ts";
import type { NodeHealth } from "./nodeHealth.ts";
import type { RetryBudget } from "./retryBudget.ts";
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
  /** The least wait for the first node. If its 95th percentile for the method is longer, that is the wait. */
  readonly afterMs: number;
  /** Share of all reads that may be sent twice. */
  readonly maxShare: number;
}

/** A node, as hedges use it. */
interface HedgedNode extends Pick<UpstreamNode, "request" | "available"> {
  readonly health: Pick<NodeHealth, "recordLatencyAbove">;
}

const QUANTILE = 0.95;
/** Limit of the hedges that a time without slow reads saves up. */
const MAX_SAVED_HEDGES = 100;

const hasContent = ({ body }: RpcResponse): boolean => !(body instanceof Uint8Array && isEmpty(body));

interface Attempt {
  readonly node: HedgedNode;
  readonly startedMs: number;
  readonly signal: LazySignal;
}

/** Sends one read to one node, and maybe to a second. The first response that is not empty wins. */
class Race {
  readonly #request: RpcRequest;
  readonly #context: Context;
  readonly #onDuration: (node: HedgedNode, durationMs: number) => void;
  readonly #result = Promise.withResolvers<RpcResponse>();
  readonly #running = new Set<Attempt>();
  readonly #onDisconnect = (): void => this.#abortAll(abortReason(this.#context));
  #empty: RpcResponse | undefined;

  constructor(request: RpcRequest, context: Context, onDuration: (node: HedgedNode, durationMs: number) => void) {
    this.#request = request;
    this.#context = context;
    this.#onDuration = onDuration;
    onAbort(context, this.#onDisconnect);
  }

  get result(): Promise<RpcResponse> {
    return this.#result.promise;
  }

  start(node: HedgedNode): void {
    const context = this.#context;
    // The owner of the context's signal ends it at the deadline, and this one with it.
    const signal = new LazySignal(context.lazySignal?.deadlineMs);
    const attempt = { node, startedMs: performance.now(), signal };
    this.#running.add(attempt);
    if (isAborted(context)) {
      signal.abort(abortReason(context));
    }
    node.request(this.#request, context.with({ ending: signal })).then(
      (response) => this.#onResponse(attempt, response),
      (error: unknown) => this.#onError(attempt, error),
    );
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
    if (this.#running.size === 0) {
      this.#result.resolve(this.#empty);
    }
  }

  /** An empty response or an error wins only when no other attempt is in flight. */
  #onError(attempt: Attempt, error: unknown): void {
    this.#running.delete(attempt);
    if (this.#running.size > 0) {
      return;
    }
    if (this.#empty) {
      this.#result.resolve(this.#empty);
    } else {
      this.#result.reject(error);
    }
  }
}

/** Sends a slow read to a second node too, while that is a small share of all reads. */
export class Hedge {
  readonly #chain: string;
  readonly #options: HedgeOptions;
  readonly #budget: RetryBudget;
  readonly #metrics: Pick<Metrics, "upstreamHedges">;
  /** Durations by node and method. */
  readonly #durations = new Map<HedgedNode, Map<string, RecentQuantile>>();
  /** Hedges that the share of reads allows now. */
  readonly #saved = new TokenBucket(MAX_SAVED_HEDGES, 0);

  constructor(chain: string, options: HedgeOptions, budget: RetryBudget, metrics: Pick<Metrics, "upstreamHedges">) {
    this.#chain = chain;
    this.#options = options;
    this.#budget = budget;
    this.#metrics = metrics;
  }

  async request(first: HedgedNode, second: HedgedNode, request: RpcRequest, context: Context): Promise<RpcResponse> {
    this.#saved.earn(this.#options.maxShare);
    const race = new Race(request, context, (node, durationMs) =>
      this.#quantileOf(node, request.method).record(durationMs),
    );
    race.start(first);
    const { afterMs } = this.#options;
    const quantileMs = this.#quantileOf(first, request.method).valueMs ?? 0;
    const reason = quantileMs > afterMs ? "quantile" : "minimum";
    const timer = setTimeout(() => this.#hedge(race, second, reason), Math.max(afterMs, quantileMs));
    try {
      return await race.result;
    } finally {
      clearTimeout(timer);
      race.finish();
    }
  }

  #hedge(race: Race, second: HedgedNode, reason: HedgeReason): void {
    if (this.#saved.tokens >= 1 && second.available && this.#budget.take()) {
      this.#saved.spend(1);
      this.#metrics.upstreamHedges.inc({ chain: this.#chain, reason });
      race.start(second);
    }
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
