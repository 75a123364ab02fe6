import { setTimeout as sleep } from "node:timers/promises";
import { NodeError, type Reach } from "../core/node.ts";
import type { Call } from "../jsonrpc/call.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import type { CounterSeries, HistogramSeries } from "../telemetry/summedSeries.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { type Breaker, type BreakerOptions, createBreaker } from "./breaker.ts";
import { type Budget, createBudget } from "./budget.ts";
import { isFault } from "./errorKind.ts";
import { createNodeClient, type NodeClient, type SendOptions } from "./nodeClient.ts";
import type { ObservedHealth } from "./observedHealth.ts";

export interface NodeSenderOptions {
  readonly chain: string;
  readonly name: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly requestsPerSecond: number | undefined;
  readonly concurrency: number | undefined;
  readonly maxResponseBytes: number;
  readonly breaker: Pick<BreakerOptions, "failures" | "openMs">;
  /** Whether ids, statuses and error objects of responses are checked. */
  readonly verifies: boolean;
  /** The metric label of a method, from a closed set. */
  readonly methodLabel: (method: string) => string;
  readonly health: ObservedHealth;
  /** The node closed a connection, or none could be opened. */
  readonly onLost: () => void;
  /** Called with each error, and with the first method of its HTTP request. */
  readonly onError: (error: unknown, method: string | undefined) => void;
}

const DEFAULT_CONCURRENCY = 256;
/** The pause after a rate limit without Retry-After. */
const DEFAULT_PAUSE_MS = 1000;

/** Sends HTTP requests to one node within its budget of calls. Each outcome updates breaker, metrics and health. */
export class NodeSender {
  readonly #options: NodeSenderOptions;
  readonly #labels: { readonly chain: string; readonly node: string };
  readonly #metrics: Telemetry["metrics"];
  readonly #budget: Budget;
  readonly #breaker: Breaker;
  readonly #client: NodeClient;
  /** Calls by metric label of their method. */
  readonly #calls = new Map<string, CounterSeries>();
  readonly #succeeded: CounterSeries;
  readonly #seconds: HistogramSeries;

  constructor(options: NodeSenderOptions, { log, metrics }: Telemetry) {
    const { chain, name, onLost } = options;
    const labels = { chain, node: name };
    const budget = createBudget(options.requestsPerSecond);
    this.#options = options;
    this.#labels = labels;
    this.#metrics = metrics;
    this.#succeeded = metrics.upstreamRequests.series({ ...labels, outcome: "ok" });
    this.#seconds = metrics.upstreamSeconds.series(labels);
    this.#budget = budget;
    this.#client = createNodeClient({
      name,
      url: options.url,
      ...(options.headers && { headers: options.headers }),
      concurrency: options.concurrency ?? DEFAULT_CONCURRENCY,
      maxResponseBytes: options.maxResponseBytes,
      verifies: options.verifies,
      onRetryAfter: (seconds) => budget.pause(seconds * 1000),
      onLost,
    });
    this.#breaker = createBreaker({
      ...options.breaker,
      onChange: (open) => {
        metrics.upstreamBreaker.set(labels, open ? 1 : 0);
        log.warn(labels, open ? "node is not used: it failed too often" : "node is used again");
      },
    });
    metrics.upstreamBreaker.set(labels, 0);
  }

  /** True if the breaker is not open and the node did not ask for a pause. */
  get isReady(): boolean {
    return this.#breaker.available && !this.#budget.paused;
  }

  /** See NodeClient for `isVerified`. */
  call(call: Call, reach: Reach, isVerified?: boolean): Promise<Uint8Array> {
    return this.#exchange([call], reach, (send) => this.#client.call(call, send, isVerified));
  }

  batch(calls: readonly Call[], reach: Reach): Promise<(Uint8Array | NodeError)[]> {
    return this.#exchange(calls, reach, (send) => this.#client.batch(calls, send));
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  /** Makes one HTTP request with these calls, when the budget allows it. */
  #exchange<T>(calls: readonly Call[], reach: Reach, run: (send: SendOptions) => Promise<T>): Promise<T> {
    const { delayMs } = this.#budget;
    if (delayMs > reach.deadlineMs - performance.now()) {
      return Promise.reject(this.#budgetError(delayMs));
    }
    const waitMs = this.#budget.take(calls.length);
    return waitMs <= 0
      ? this.#send(calls, reach, run)
      : this.#waitForBudget(waitMs, reach).then(() => this.#send(calls, reach, run));
  }

  async #send<T>(calls: readonly Call[], reach: Reach, run: (send: SendOptions) => Promise<T>): Promise<T> {
    const { health, onError } = this.#options;
    for (const { method } of calls) {
      this.#countCall(method);
    }
    this.#breaker.begin();
    health.recordStart();
    const startedMs = performance.now();
    try {
      const { signal, traceparent, deadlineMs, maxBytes } = reach;
      const result = await run({ signal, traceparent, maxBytes, timeoutMs: deadlineMs - startedMs });
      this.#breaker.succeeded();
      this.#recordOutcome(undefined, startedMs);
      return result;
    } catch (error) {
      this.#recordFailure(error, startedMs, reach);
      onError(error, calls[0]?.method);
      throw error;
    } finally {
      health.recordEnd();
    }
  }

  #countCall(method: string): void {
    const label = this.#options.methodLabel(method);
    let calls = this.#calls.get(label);
    if (calls === undefined) {
      calls = this.#metrics.upstreamCalls.series({ ...this.#labels, method: label });
      this.#calls.set(label, calls);
    }
    calls.inc();
  }

  /** The budget allows the calls only after the deadline. */
  #budgetError(delayMs: number): NodeError {
    const { name } = this.#options;
    return new NodeError("rateLimited", name, `${name}: its budget of calls is exhausted`, {
      code: CODES.RATE_LIMITED,
      status: 429,
      retryAfterSeconds: Math.ceil(delayMs / 1000),
    });
  }

  async #waitForBudget(waitMs: number, { signal }: Reach): Promise<void> {
    const { name } = this.#options;
    await sleep(waitMs, undefined, { signal }).catch(() => {
      throw new NodeError("other", name, `${name}: the client has disconnected`);
    });
  }

  #recordFailure(error: unknown, startedMs: number, { signal }: Reach): void {
    if (signal.aborted) {
      this.#breaker.release();
      return;
    }
    if (error instanceof NodeError && isFault(error)) {
      this.#breaker.failed();
    } else {
      this.#breaker.succeeded();
    }
    this.#recordOutcome(error, startedMs);
  }

  #recordOutcome(error: unknown, startedMs: number): void {
    const durationMs = performance.now() - startedMs;
    const kind = error instanceof NodeError ? error.kind : error === undefined ? "ok" : "other";
    if (kind === "ok") {
      this.#succeeded.inc();
    } else {
      this.#metrics.upstreamRequests.inc({ ...this.#labels, outcome: kind });
    }
    this.#seconds.observe(durationMs / 1000);
    this.#options.health.recordOutcome(durationMs, error instanceof NodeError && isFault(error));
    if (kind === "rateLimited") {
      this.#budget.pause(DEFAULT_PAUSE_MS);
    }
  }
}
