import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * Options of every long run. Without them it runs until its whole claim is shown. With `steps`, it ends by count, and only a wrong
 * value fails it: no time, no error and no coverage.
 */
export interface LongOptions {
  readonly seconds: number | undefined;
  readonly steps?: number | undefined;
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The largest growth that counts as flat: resident memory of the last third compared with the first. */
export const MAX_GROWTH = 0.05;

/** Growth from the first third of the samples to the last, as a share. */
export const growth = (samples: readonly number[]): number => {
  const third = Math.max(1, Math.floor(samples.length / 3));
  return mean(samples.slice(-third)) / mean(samples.slice(0, third)) - 1;
};

/** Returns the heap in use after garbage was collected, in MiB. */
export const collectedHeapMiB = (): number => {
  setFlagsFromString("--expose-gc");
  const gc: () => void = runInNewContext("gc");
  gc();
  return Number((process.memoryUsage().heapUsed / 2 ** 20).toFixed(1));
};
