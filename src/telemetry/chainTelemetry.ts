import type { MeasuredChain } from "./metricFactory.ts";
import type { Gauge } from "./promClient.ts";
import { ChainGauge } from "./promClient.ts";
import type { Metrics, Telemetry } from "./telemetry.ts";

type LabelValues = Readonly<Record<string, string | number>>;

interface HeldValue {
  readonly labels: LabelValues;
  value: number;
}

const keyOf = (labels: LabelValues): string => JSON.stringify(Object.entries(labels).toSorted());

/** The values that one chain gives to one gauge. They are in the gauge only while they are shown. */
class ShownGauge {
  readonly #gauge: Gauge;
  readonly #values = new Map<string, HeldValue>();
  #isShown = false;

  constructor(gauge: Gauge) {
    this.#gauge = gauge;
  }

  get(): ReturnType<Gauge["get"]> {
    return this.#gauge.get();
  }

  set(labels: LabelValues, value: number): void {
    this.#values.set(keyOf(labels), { labels, value });
    if (this.#isShown) {
      this.#gauge.set(labels, value);
    }
  }

  inc(labels: LabelValues, by = 1): void {
    this.set(labels, (this.#values.get(keyOf(labels))?.value ?? 0) + by);
  }

  dec(labels: LabelValues, by = 1): void {
    this.inc(labels, -by);
  }

  remove(labels: LabelValues): void {
    this.#values.delete(keyOf(labels));
    if (this.#isShown) {
      this.#gauge.remove(labels);
    }
  }

  show(): void {
    this.#isShown = true;
    for (const { labels, value } of this.#values.values()) {
      this.#gauge.set(labels, value);
    }
  }

  hide(): void {
    this.#isShown = false;
    for (const { labels } of this.#values.values()) {
      this.#gauge.remove(labels);
    }
  }
}

/**
 * The telemetry of one chain of a configuration. During a reload two chains of one name run, and only the active one shows its
 * gauges. Counters are those of the process, because both have sent what they count.
 */
export class ChainTelemetry {
  /** The telemetry of the process, with gauges of this chain. */
  readonly telemetry: Telemetry;
  readonly #measured: MeasuredChain;
  readonly #gauges: readonly ShownGauge[];

  constructor(telemetry: Telemetry, measured: MeasuredChain) {
    const gauges: ShownGauge[] = [];
    const ofChain = (metric: Metrics[keyof Metrics]): unknown => {
      if (!(metric instanceof ChainGauge)) {
        return metric;
      }
      const gauge = new ShownGauge(metric);
      gauges.push(gauge);
      return gauge;
    };
    const entries = Object.entries(telemetry.metrics).map(([name, metric]) => [name, ofChain(metric)]);
    this.telemetry = { ...telemetry, metrics: Object.fromEntries(entries) as Metrics };
    this.#measured = measured;
    this.#gauges = gauges;
  }

  /** Begins the series of the chain, and shows its gauges. */
  show(): void {
    this.telemetry.series.beginChain(this.#measured);
    for (const gauge of this.#gauges) {
      gauge.show();
    }
  }

  /** Removes the gauges of the chain. */
  hide(): void {
    for (const gauge of this.#gauges) {
      gauge.hide();
    }
  }
}
