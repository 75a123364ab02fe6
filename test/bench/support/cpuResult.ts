import { type Measured, medianOf, spread } from "./compareServers.ts";
import { MAX_SPREAD, round } from "./result.ts";

/** Medians of the CPU of a request, and of the throughput. The ratio is the yardstick's CPU by ours. */
export const cpuResult = (results: { readonly ours: readonly Measured[]; readonly yardstick: readonly Measured[] }) => {
  const mine = medianOf(results.ours, "cpuMicroseconds");
  const theirs = medianOf(results.yardstick, "cpuMicroseconds");
  return {
    ratio: round(theirs / mine),
    ours: round(mine),
    yardstick: round(theirs),
    unit: "microseconds of CPU per request",
    unreadable: spread(results.yardstick.map(({ cpuMicroseconds }) => cpuMicroseconds)) > MAX_SPREAD,
    oursRequestsPerSecond: round(medianOf(results.ours, "requestsPerSecond"), 0),
    yardstickRequestsPerSecond: round(medianOf(results.yardstick, "requestsPerSecond"), 0),
  };
};
