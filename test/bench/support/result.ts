/** The result of a bench. A larger ratio is better. If the unit is a time, it is the yardstick's time divided by ours. */
export interface BenchResult {
  readonly claim: string;
  readonly ratio: number;
  readonly ours: number;
  readonly yardstick: number;
  readonly unit: string;
  /** The yardstick varied too much for a significant ratio. */
  readonly unreadable?: boolean;
  readonly [field: string]: string | number | boolean | undefined;
}

export interface BenchOptions {
  /** Runs for seconds instead of a minute. It shows only that the bench runs. */
  readonly short: boolean;
  /** Paths of the binaries of peers, by name. */
  readonly binaries: Readonly<Record<string, string | undefined>>;
}

export const MAX_SPREAD = 0.1;

export const round = (value: number, digits = 3): number => Number(value.toFixed(digits));

/** The value below which this share of the values is. */
export const quantile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? 0;

export const median = (values: readonly number[]): number => quantile(values, 0.5);
