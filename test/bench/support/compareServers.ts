import { startChild } from "./child.ts";
import { cpuSeconds } from "./cpuTime.ts";
import type { Load, LoadResult } from "./load.ts";
import { MAX_SPREAD, round } from "./result.ts";

/** A server under load. `pids` are the processes whose CPU time counts. */
export interface Server {
  readonly port: number;
  readonly path: string;
  /** One more header of each request. */
  readonly header?: string | undefined;
  readonly pids: readonly number[];
  /** The only thread whose CPU time counts: see `mainThreadOf`. */
  readonly thread?: string;
  end(): Promise<void>;
}

export interface Measured {
  readonly cpuMicroseconds: number;
  readonly requestsPerSecond: number;
  readonly medianMs: number;
  readonly p99Ms: number;
}

export type LoadShape = Pick<Load, "body" | "counts" | "connections" | "warmMs" | "measureMs">;

export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
};

/** Difference of largest and smallest, as a share of the median. Above a tenth, a run is not significant. */
export const spread = (values: readonly number[]): number =>
  (Math.max(...values) - Math.min(...values)) / median(values);

export const measure = async ({ port, path, header, pids, thread }: Server, shape: LoadShape): Promise<Measured> => {
  const counted: readonly (number | string)[] = thread === undefined ? pids : [thread];
  const cpu = (): number => counted.reduce<number>((sum, each) => sum + cpuSeconds(each), 0);
  const load = startChild("load.ts");
  try {
    load.send({ ...shape, port, path, header });
    await load.message();
    const before = cpu();
    const { requests, seconds, medianMs, p99Ms } = (await load.message()) as LoadResult;
    const used = cpu() - before;
    return { cpuMicroseconds: (used / requests) * 1e6, requestsPerSecond: requests / seconds, medianMs, p99Ms };
  } finally {
    await load.end();
  }
};

/** Loads both servers in turn, in alternating order, so that other load on the machine affects both. */
export const alternate = async (
  ours: Server,
  yardstick: Server,
  shape: LoadShape,
  rounds: number,
): Promise<{ ours: Measured[]; yardstick: Measured[] }> => {
  const results = { ours: [] as Measured[], yardstick: [] as Measured[] };
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? (["yardstick", "ours"] as const) : (["ours", "yardstick"] as const);
    for (const name of order) {
      results[name].push(await measure(name === "ours" ? ours : yardstick, shape));
    }
  }
  return results;
};

export const medianOf = (results: readonly Measured[], field: keyof Measured): number =>
  median(results.map((result) => result[field]));

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
