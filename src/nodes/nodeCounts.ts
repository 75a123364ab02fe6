import type { CallScope } from "../core/context.ts";
import type { NodeErrorKind } from "../core/node.ts";
import type { CounterSeries, HistogramSeries } from "../telemetry/summedSeries.ts";
import type { Metrics } from "../telemetry/telemetry.ts";
import type { TransportOptions } from "./nodeConfig.ts";

type CountedMetrics = Pick<
  Metrics,
  | "upstreamRequests"
  | "upstreamHttpRequests"
  | "upstreamCalls"
  | "upstreamUnits"
  | "upstreamRefused"
  | "upstreamSeconds"
>;

type CountedMethods = Pick<TransportOptions, "methodLabel" | "unitsOf" | "onCall">;

/** The metrics of the calls to one node. Each series is looked up once. */
export class NodeCounts {
  readonly #labels: { readonly chain: string; readonly node: string };
  readonly #metrics: CountedMetrics;
  readonly #methods: CountedMethods;
  /** Calls by metric label of their method. */
  readonly #calls = new Map<string, CounterSeries>();
  readonly #outcomes = new Map<NodeErrorKind | "ok", CounterSeries>();
  readonly #requests: CounterSeries;
  readonly #units: CounterSeries;
  readonly #refused: CounterSeries;
  readonly #seconds: HistogramSeries;

  constructor(
    labels: { readonly chain: string; readonly node: string },
    metrics: CountedMetrics,
    methods: CountedMethods,
  ) {
    this.#labels = labels;
    this.#metrics = metrics;
    this.#methods = methods;
    this.#units = metrics.upstreamUnits.series(labels);
    this.#refused = metrics.upstreamRefused.series(labels);
    this.#requests = metrics.upstreamHttpRequests.series(labels);
    this.#seconds = metrics.upstreamSeconds.series(labels);
  }

  /** Counts an HTTP request. */
  addRequest(): void {
    this.#requests.inc();
  }

  /** Counts a call that was not sent, because too many calls wait. */
  addRefusal(): void {
    this.#refused.inc();
  }

  /** A call without a connection is one of forebay itself. */
  addCall(method: string, { caller }: Pick<CallScope, "caller">): void {
    const label = this.#methods.methodLabel?.(method) ?? "other";
    let calls = this.#calls.get(label);
    if (calls === undefined) {
      calls = this.#metrics.upstreamCalls.series({ ...this.#labels, method: label });
      this.#calls.set(label, calls);
    }
    calls.inc();
    const units = this.#methods.unitsOf?.(method) ?? 0;
    this.#units.inc(units);
    this.#methods.onCall?.(caller?.connection !== undefined, units);
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
