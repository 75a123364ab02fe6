import type { NodeErrorKind } from "../core/node.ts";
import type { CounterSeries, HistogramSeries } from "../telemetry/summedSeries.ts";
import type { Metrics } from "../telemetry/telemetry.ts";

type CountedMetrics = Pick<
  Metrics,
  "upstreamRequests" | "upstreamHttpRequests" | "upstreamCalls" | "upstreamSeconds" | "upstreamBreaker"
>;

/** The metrics of the calls to one node. Each series is looked up once. */
export class NodeCounts {
  readonly #labels: { readonly chain: string; readonly node: string };
  readonly #metrics: CountedMetrics;
  readonly #methodLabel: (method: string) => string;
  /** Calls by metric label of their method. */
  readonly #calls = new Map<string, CounterSeries>();
  readonly #outcomes = new Map<NodeErrorKind | "ok", CounterSeries>();
  readonly #requests: CounterSeries;
  readonly #seconds: HistogramSeries;

  constructor(
    labels: { readonly chain: string; readonly node: string },
    metrics: CountedMetrics,
    methodLabel: (method: string) => string,
  ) {
    this.#labels = labels;
    this.#metrics = metrics;
    this.#methodLabel = methodLabel;
    this.#requests = metrics.upstreamHttpRequests.series(labels);
    this.#seconds = metrics.upstreamSeconds.series(labels);
    this.setBreaker(false);
  }

  setBreaker(isOpen: boolean): void {
    this.#metrics.upstreamBreaker.set(this.#labels, isOpen ? 1 : 0);
  }

  /** Counts an HTTP request. */
  addRequest(): void {
    this.#requests.inc();
  }

  addCall(method: string): void {
    const label = this.#methodLabel(method);
    let calls = this.#calls.get(label);
    if (calls === undefined) {
      calls = this.#metrics.upstreamCalls.series({ ...this.#labels, method: label });
      this.#calls.set(label, calls);
    }
    calls.inc();
  }

  addOutcome(outcome: NodeErrorKind | "ok", durationMs: number): void {
    let outcomes = this.#outcomes.get(outcome);
    if (outcomes === undefined) {
      outcomes = this.#metrics.upstreamRequests.series({ ...this.#labels, outcome });
      this.#outcomes.set(outcome, outcomes);
    }
    outcomes.inc();
    this.#seconds.observe(durationMs / 1000);
  }
}
