import { ChainGauge, Counter, Gauge, type Histogram, type Registry } from "./promClient.ts";
import { type CounterSeries, type HistogramSeries, SeriesOfCounter, SummedHistogram } from "./summedSeries.ts";

/** Histogram buckets for durations, in seconds. */
export const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Histogram buckets for small counts. */
export const COUNTS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 1024];

const PREFIX = "forebay_";

type LabelValue = string | number;

/** A label that takes other values too. A series begins for each of `first` only. */
export interface OpenLabel {
  readonly first: readonly LabelValue[];
}

/** The labels of a metric: each with all its values, or open. */
type Labels = Readonly<Record<string, readonly LabelValue[] | OpenLabel>>;

type ValuesOf<L extends Labels> = {
  readonly [K in keyof L]: L[K] extends readonly (infer V extends LabelValue)[] ? V : LabelValue;
};

/** A counter that accepts only the declared label values. */
export interface LabelledCounter<L extends Labels> extends Pick<Counter, "get"> {
  inc(values: ValuesOf<L>, by?: number): void;
  /** Returns one series, for hot paths: prom-client finds a series by its labels at each increment. */
  series(values: ValuesOf<L>): CounterSeries;
  /** Removes one series. Another increment begins it again at 0. */
  remove(values: ValuesOf<L>): void;
}

/** A gauge that accepts only the declared label values. */
export interface LabelledGauge<L extends Labels> extends Pick<Gauge, "get"> {
  inc(values: ValuesOf<L>, by?: number): void;
  dec(values: ValuesOf<L>, by?: number): void;
  set(values: ValuesOf<L>, value: number): void;
  remove(values: ValuesOf<L>): void;
}

/** A histogram that accepts only the declared label values. */
export interface LabelledHistogram<L extends Labels> extends Pick<Histogram, "get"> {
  observe(values: ValuesOf<L>, value: number): void;
  /** Returns one series, for hot paths: prom-client finds a series by its labels at each observation. */
  series(values: ValuesOf<L>): HistogramSeries;
}

/** A part of the process or of a chain that is configured or absent. Without it, its metrics have no series. */
type Part = "redis" | "disk" | "feed";

/** A chain whose series begin. */
export interface MeasuredChain {
  readonly chain: string;
  readonly nodes: readonly string[];
  /** The parts that are configured. */
  readonly parts: ReadonlySet<Part>;
}

interface DeclaredSeries {
  readonly labels: Labels;
  readonly part: Part | undefined;
  begin(values: Readonly<Record<string, LabelValue>>): void;
}

/** The name of the chain. */
export const CHAIN: OpenLabel = { first: [] };
/** The name of a node of the chain. */
export const NODE: OpenLabel = { first: [] };
/** The method of a call. A method outside the method table is `other`. */
export const METHOD: OpenLabel = { first: ["other"] };

/** Returns every combination of label values, in the order of the labels. */
const combinations = (labels: Labels): readonly Readonly<Record<string, LabelValue>>[] =>
  Object.entries(labels).reduce<Readonly<Record<string, LabelValue>>[]>(
    (rows, [name, values]) =>
      rows.flatMap((row) => ("first" in values ? values.first : values).map((value) => ({ ...row, [name]: value }))),
    [{}],
  );

/**
 * Declares metrics and registers them. Counters and histograms begin at 0 for all their label values.
 * A rate over events that have not happened yet is then 0, and the first event is an increase.
 */
export class MetricFactory {
  readonly #registers: Registry[];
  readonly #series: DeclaredSeries[];
  readonly #part: Part | undefined;

  constructor(registry: Registry, series: DeclaredSeries[] = [], part?: Part) {
    this.#registers = [registry];
    this.#series = series;
    this.#part = part;
  }

  /** Returns a factory whose metrics have series only if this part is configured. */
  with(part: Part): MetricFactory {
    const [registry] = this.#registers;
    if (registry === undefined) {
      throw new Error("a metric factory needs a registry");
    }
    return new MetricFactory(registry, this.#series, part);
  }

  counter<const L extends Labels>(name: string, help: string, labels: L): LabelledCounter<L> {
    const series = new SeriesOfCounter();
    const metric: Counter = new Counter({
      ...this.#describe(name, help),
      labelNames: Object.keys(labels),
      collect: () => series.flush(),
    });
    this.#declare(labels, (values) => metric.inc(values, 0));
    return Object.assign(metric, { series: (values: ValuesOf<L>) => series.get(metric, values) });
  }

  /** Declares a counter without labels. */
  total(name: string, help: string): Counter {
    return new Counter(this.#describe(name, help));
  }

  histogram<const L extends Labels>(name: string, help: string, buckets: number[], labels: L): LabelledHistogram<L> {
    const description = { ...this.#describe(name, help), labelNames: Object.keys(labels) };
    const metric = new SummedHistogram(description, buckets);
    this.#declare(labels, (values) => metric.series(values));
    return metric;
  }

  /** Declares a gauge that has no series until it is set. */
  gauge<const L extends Labels>(name: string, help: string, labels: L): LabelledGauge<L> {
    return this.#gauge(name, help, labels);
  }

  /** Declares a gauge that begins at 0 for all its label values. */
  gaugeFromZero<const L extends Labels>(name: string, help: string, labels: L): LabelledGauge<L> {
    const metric = this.#gauge(name, help, labels);
    this.#declare(labels, (values) => metric.inc(values, 0));
    return metric;
  }

  /** Declares a gauge without labels. `collect` is called before each scrape. */
  level(name: string, help: string, collect?: (metric: Gauge) => void): Gauge {
    const metric: Gauge = new Gauge({
      ...this.#describe(name, help),
      ...(collect && { collect: () => collect(metric) }),
    });
    return metric;
  }

  /** Declares a counter without labels whose value is read before each scrape. It must never fall. */
  collected(name: string, help: string, read: () => number): Counter {
    const metric: Counter = new Counter({
      ...this.#describe(name, help),
      collect: () => {
        metric.reset();
        metric.inc(read());
      },
    });
    return metric;
  }

  /** Declares a gauge without labels that has no series until it is set. prom-client begins others at 0. */
  absentLevel(name: string, help: string): Gauge {
    const metric = this.level(name, help);
    metric.remove();
    return metric;
  }

  /** Begins the series of the process. */
  beginProcess(parts: ReadonlySet<Part>): void {
    for (const { labels, begin } of this.#seriesOf(parts)) {
      if (!("chain" in labels)) {
        combinations(labels).forEach(begin);
      }
    }
  }

  /** Begins the series of a chain and its nodes. Existing series keep their values. */
  beginChain({ chain, nodes, parts }: MeasuredChain): void {
    const names: Labels = { chain: [chain], node: nodes };
    for (const { labels, begin } of this.#seriesOf(parts)) {
      if (!("chain" in labels)) {
        continue;
      }
      const values = Object.entries(labels).map(([label, declared]) => [label, names[label] ?? declared] as const);
      combinations(Object.fromEntries(values)).forEach(begin);
    }
  }

  #gauge(name: string, help: string, labels: Labels): Gauge {
    const description = { ...this.#describe(name, help), labelNames: Object.keys(labels) };
    return "chain" in labels ? new ChainGauge(description) : new Gauge(description);
  }

  #describe(name: string, help: string) {
    return { name: PREFIX + name, help, registers: this.#registers };
  }

  #declare(labels: Labels, begin: DeclaredSeries["begin"]): void {
    this.#series.push({ labels, part: this.#part, begin });
  }

  #seriesOf(parts: ReadonlySet<Part>): readonly DeclaredSeries[] {
    return this.#series.filter(({ part }) => part === undefined || parts.has(part));
  }
}
