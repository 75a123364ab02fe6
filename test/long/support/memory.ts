/** What every long run is given: without `seconds` it runs until its whole claim is shown. */
export interface LongOptions {
  readonly seconds: number | undefined;
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The largest growth that still counts as flat: resident memory of the last third above that of the first. */
export const MAX_GROWTH = 0.05;

/** Growth from the first third of the samples to the last, as a share. */
export const growth = (samples: readonly number[]): number => {
  const third = Math.max(1, Math.floor(samples.length / 3));
  return mean(samples.slice(-third)) / mean(samples.slice(0, third)) - 1;
};
