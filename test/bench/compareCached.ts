import { type Child, startChild } from "./child.ts";
import { alternate, medianOf, type Server, spread } from "./compareServers.ts";
import { type BenchOptions, type BenchResult, MAX_SPREAD, round } from "./result.ts";

export interface CachedShape {
  readonly claim: string;
  readonly bytes: number;
  readonly connections: number;
  readonly redisUrl?: string;
}

const BODY = '{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x10",true]}';

const start = async (args: readonly string[]): Promise<{ child: Child; server: Server }> => {
  const child = startChild("cachedServer.ts", args);
  const port = (await child.message()) as number;
  return { child, server: { port, path: "/", pids: [child.pid], end: child.end } };
};

/** Our cache behind our server against a bare node:http server that sends the same bytes: CPU of one request. */
export const compareCached = async (shape: CachedShape, { short }: BenchOptions): Promise<BenchResult> => {
  const ours = await start(["ours", `${shape.bytes}`, ...(shape.redisUrl === undefined ? [] : [shape.redisUrl])]);
  const bare = await start(["bare", `${shape.bytes}`]);
  try {
    const load = {
      body: BODY,
      connections: shape.connections,
      warmMs: short ? 500 : 1_000,
      measureMs: short ? 1_000 : 4_000,
    };
    const results = await alternate(ours.server, bare.server, load, short ? 3 : 7);
    ours.child.send("delay");
    const { loopP99Ms } = (await ours.child.message()) as { loopP99Ms: number };
    const mine = medianOf(results.ours, "cpuMicroseconds");
    const theirs = medianOf(results.yardstick, "cpuMicroseconds");
    return {
      claim: shape.claim,
      ratio: round(theirs / mine),
      ours: round(mine),
      yardstick: round(theirs),
      unit: "microseconds of CPU per request",
      unreadable: spread(results.yardstick.map(({ cpuMicroseconds }) => cpuMicroseconds)) > MAX_SPREAD,
      loopP99Ms: round(loopP99Ms),
      oursRequestsPerSecond: round(medianOf(results.ours, "requestsPerSecond"), 0),
      yardstickRequestsPerSecond: round(medianOf(results.yardstick, "requestsPerSecond"), 0),
      oursMedianMs: round(medianOf(results.ours, "medianMs")),
      yardstickMedianMs: round(medianOf(results.yardstick, "medianMs")),
    };
  } finally {
    await Promise.all([ours.server.end(), bare.server.end()]);
  }
};
