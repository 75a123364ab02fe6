import { Counter, type Histogram, type MetricType, type Registry } from "./promClient.ts";

type LabelValues = Readonly<Partial<Record<string, string | number>>>;

/** One series of a counter. Increments are summed in a number, and copied to the counter before each scrape. */
export class CounterSeries {
  readonly #counter: Counter;
  readonly #labels: LabelValues;
  #sum = 0;

  constructor(counter: Counter, labels: LabelValues) {
    this.#counter = counter;
    this.#labels = labels;
  }

  inc(by = 1): void {
    this.#sum += by;
  }

  /** Copies the sum to the counter. */
  flush(): void {
    if (this.#sum === 0) {
      return;
    }
    this.#counter.inc(this.#labels, this.#sum);
    this.#sum = 0;
  }
}

/** The observations of one series of a histogram. */
export class HistogramSeries {
  readonly #labels: LabelValues;
  readonly #bounds: readonly number[];
  /** Observations by bucket. The last element is for values above all bounds. */
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(labels: LabelValues, bounds: readonly number[]) {
    this.#labels = labels;
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] ?? 0)) {
      bucket++;
    }
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sum += value;
  }

  /** Returns the values of a scrape. A bucket counts the values up to its bound. */
  values(name: string) {
    const labels = this.#labels;
    let count = 0;
    const buckets = [...this.#counts].map((own, bucket) => {
      count += own;
      return { metricName: `${name}_bucket`, labels: { le: this.#bounds[bucket] ?? "+Inf", ...labels }, value: count };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: this.#sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }
}

interface HistogramDescription {
  readonly name: string;
  readonly help: string;
  readonly registers: Registry[];
  readonly labelNames: string[];
}

/** prom-client declares numbers as types, and its registry reads texts. */
const HISTOGRAM = "histogram" as unknown as MetricType;

/**
 * A histogram whose series are arrays: prom-client's own finds a series by its labels at each observation. A registry reads a metric
 * by its method `get` alone.
 */
export class SummedHistogram extends Counter {
  readonly #description: HistogramDescription;
  readonly #bounds: readonly number[];
  readonly #series = new Map<string, HistogramSeries>();

  constructor(description: HistogramDescription, bounds: readonly number[]) {
    super(description);
    this.#description = description;
    this.#bounds = bounds;
  }

  /** Returns one series. It begins at 0. */
  series(labels: LabelValues): HistogramSeries {
    const key = this.#keyOf(labels);
    const series = this.#series.get(key) ?? new HistogramSeries(labels, this.#bounds);
    this.#series.set(key, series);
    return series;
  }

  observe(labels: LabelValues, value: number): void {
    this.series(labels).observe(value);
  }

  override remove(labels: LabelValues | string = {}): void {
    if (typeof labels === "object") {
      this.#series.delete(this.#keyOf(labels));
    }
  }

  override async get(): ReturnType<Histogram["get"]> {
    const values = [...this.#series.values()].flatMap((series) => series.values(this.#description.name));
    return { ...(await super.get()), type: HISTOGRAM, values };
  }

  #keyOf(labels: LabelValues): string {
    return JSON.stringify(this.#description.labelNames.map((name) => labels[name]));
  }
}

/** The series of one counter, each created once. */
export class SeriesOfCounter {
  readonly #byLabels = new Map<string, CounterSeries>();

  get(counter: Counter, labels: LabelValues): CounterSeries {
    const key = JSON.stringify(labels);
    let series = this.#byLabels.get(key);
    if (series === undefined) {
      series = new CounterSeries(counter, labels);
      this.#byLabels.set(key, series);
    }
    return series;
  }

  /** Copies all sums to the counter. */
  flush(): void {
    for (const series of this.#byLabels.values()) {
      series.flush();
    }
  }
}
