/** What a bench returns. A larger ratio is better: where the unit is a time, it is the yardstick over ours. */
export interface BenchResult {
  readonly claim: string;
  readonly ratio: number;
  readonly ours: number;
  readonly yardstick: number;
  readonly unit: string;
  /** The yardstick varied too much for the ratio to say anything. */
  readonly unreadable?: boolean;
  readonly [field: string]: string | number | boolean | undefined;
}

export interface BenchOptions {
  /** Seconds instead of a minute: shows that the bench runs, not more. */
  readonly short: boolean;
}

export const MAX_SPREAD = 0.1;

export const round = (value: number, digits = 3): number => Number(value.toFixed(digits));
