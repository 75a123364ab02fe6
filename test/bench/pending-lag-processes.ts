import { type Lags, measureLags, quantile } from "./pending-lag.ts";
import { type BenchOptions, type BenchResult, median, round } from "./support/result.ts";

const MAX_MORE = { medianMs: 5, p99Ms: 10 };

const summary = (runs: readonly Lags[]) => ({
  medianMs: median(runs.map(({ lagsMs }) => quantile(lagsMs, 0.5))),
  p99Ms: median(runs.map(({ lagsMs }) => quantile(lagsMs, 0.99))),
});

/** Measures how much later a message is in responses with two serving processes than with one process. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const durationMs = short ? 5_000 : 20_000;
  const runs = { one: [] as Lags[], two: [] as Lags[] };
  for (let index = 0; index < (short ? 1 : 5); index++) {
    runs.one.push(await measureLags("e", durationMs, 1));
    runs.two.push(await measureLags("e", durationMs, 2));
  }
  const [one, two] = [summary(runs.one), summary(runs.two)];
  return {
    claim: "with two processes, a message is in answers at most 5 ms later (p99 10) than with one",
    ratio: round((one.medianMs + MAX_MORE.medianMs) / two.medianMs),
    ours: round(two.medianMs),
    yardstick: round(one.medianMs),
    unit: "ms later than a bare client, median",
    oursP99Ms: round(two.p99Ms),
    yardstickP99Ms: round(one.p99Ms),
    maxMoreMs: MAX_MORE.medianMs,
    maxMoreP99Ms: MAX_MORE.p99Ms,
  };
};
