import { type Counter, Histogram } from "./promClient.ts";

type LabelValues = Readonly<Record<string, string | number>>;

/** The fields that prom-client stores for one series of a histogram. */
interface StoredSeries {
  readonly labels: LabelValues;
  /** Observations by the upper bound of their bucket. */
  readonly bucketValues: Record<number, number>;
  sum: number;
  count: number;
}

/** A histogram that accepts many observations at once. */
export class SummableHistogram extends Histogram {
  /** A field of prom-client that its types lack. */
  declare private readonly hashMap: Readonly<Record<string, StoredSeries>>;

  /** Returns the stored series of these labels. It begins at 0. */
  seriesOf(labels: LabelValues): StoredSeries {
    const find = (): StoredSeries | undefined => {
      const names = Object.keys(labels);
      return Object.values(this.hashMap).find((each) => names.every((name) => each.labels[name] === labels[name]));
    };
    const existing = find();
    if (existing !== undefined) {
      return existing;
    }
    this.zero(labels);
    const created = find();
    if (created === undefined) {
      throw new Error("prom-client does not store the series of a histogram in hashMap");
    }
    return created;
  }
}

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

/** One series of a histogram. Observations are counted in an array, and copied to the histogram before each scrape. */
export class HistogramSeries {
  readonly #histogram: SummableHistogram;
  readonly #labels: LabelValues;
  readonly #bounds: readonly number[];
  /** Observations by bucket. The last element is for values above all bounds. */
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(histogram: SummableHistogram, labels: LabelValues, bounds: readonly number[]) {
    this.#histogram = histogram;
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

  /** Copies the observations to the histogram. */
  flush(): void {
    if (!this.#counts.some((count) => count > 0)) {
      return;
    }
    const stored = this.#histogram.seriesOf(this.#labels);
    for (const [bucket, count] of this.#counts.entries()) {
      const bound = this.#bounds[bucket];
      if (bound !== undefined) {
        stored.bucketValues[bound] = (stored.bucketValues[bound] ?? 0) + count;
      }
      stored.count += count;
    }
    stored.sum += this.#sum;
    this.#counts.fill(0);
    this.#sum = 0;
  }
}

/** The series of one metric, each created once. */
export class SeriesOfMetric<S extends { flush(): void }> {
  readonly #byLabels = new Map<string, S>();
  readonly #create: (labels: LabelValues) => S;

  constructor(create: (labels: LabelValues) => S) {
    this.#create = create;
  }

  get(labels: LabelValues): S {
    const key = JSON.stringify(labels);
    let series = this.#byLabels.get(key);
    if (series === undefined) {
      series = this.#create(labels);
      this.#byLabels.set(key, series);
    }
    return series;
  }

  /** Copies all sums to the metric. */
  flush(): void {
    for (const series of this.#byLabels.values()) {
      series.flush();
    }
  }
}
