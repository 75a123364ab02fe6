/**
 * Options of every long run. Without them it runs until its whole claim is shown. With `steps`, it ends by count, and only a wrong
 * value fails it: no time, no error and no coverage.
 */
export interface LongOptions {
  readonly seconds: number | undefined;
  readonly steps?: number | undefined;
}
