/** One value of a metric. */
export interface Value {
  readonly labels: Partial<Record<string, string | number>>;
  readonly value: number;
}

/** A metric with its values by labels. */
export interface Counted {
  get(): Promise<{ readonly values: readonly Value[] }>;
}

const STATUS_METRICS = [
  "requests",
  "cacheLookups",
  "savedCalls",
  "savedUnits",
  "proofAnswers",
  "headResponses",
  "stateLookups",
  "stateValues",
  "stateBytes",
  "upstreamCalls",
  "upstreamRequests",
  "upstreamUnits",
  "upstreamLastError",
] as const;

/** The metrics that the status page shows. */
export type StatusMetrics = Readonly<Record<(typeof STATUS_METRICS)[number], Counted>>;

/** The values of the metrics at one time, by chain. */
export class StatusValues {
  readonly atMs = performance.now();
  readonly #values: ReadonlyMap<keyof StatusMetrics, ReadonlyMap<unknown, readonly Value[]>>;

  constructor(values: ReadonlyMap<keyof StatusMetrics, readonly Value[]>) {
    this.#values = new Map(
      [...values].map(([metric, list]) => [metric, Map.groupBy(list, ({ labels }) => labels.chain)]),
    );
  }

  /** Returns the values of one chain. */
  of(metric: keyof StatusMetrics, chain: string): readonly Value[] {
    return this.#values.get(metric)?.get(chain) ?? [];
  }
}

/** Reads the metrics. */
export const readStatusValues = async (metrics: StatusMetrics): Promise<StatusValues> => {
  const lists = STATUS_METRICS.map(async (metric) => {
    const { values } = await metrics[metric].get();
    // prom-client returns its own objects, whose values change later.
    return [metric, values.map(({ labels, value }) => ({ labels, value }))] as const;
  });
  return new StatusValues(new Map(await Promise.all(lists)));
};

export const sumOfValues = (values: readonly Value[]): number => values.reduce((sum, { value }) => sum + value, 0);

/** Returns the values whose label has one of these values. */
export const valuesWith = (values: readonly Value[], label: string, wanted: ReadonlySet<unknown>): readonly Value[] =>
  values.filter(({ labels }) => wanted.has(labels[label]));
