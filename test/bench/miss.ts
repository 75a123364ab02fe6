import { startChild } from "./support/child.ts";
import { alternate, measure, median, medianOf, type Server, spread } from "./support/compareServers.ts";
import { startForebay } from "./support/forebay.ts";
import { hasNginx, startNginx } from "./support/nginx.ts";
import { type BenchOptions, type BenchResult, MAX_SPREAD, round } from "./support/result.ts";

const CONNECTIONS = 64;
/** A different address in each request, at pending. No request is cached or coalesced. */
const BODY =
  '{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x00000000000000000000000000000000{n}","pending"]}';

/** Sends requests that are never cached through forebay and through nginx to a node that answers at once. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  if (!hasNginx()) {
    throw new Error("this bench needs nginx: apt-get install nginx-light");
  }
  const node = startChild("missServer.ts");
  const nodePort = (await node.message()) as number;
  const started: Server[] = [];
  const start = async (server: Promise<Server>): Promise<Server> => {
    started.push(await server);
    return server;
  };
  const direct = { port: nodePort, path: "/", pids: [], end: async () => {} };
  const times = { body: BODY, warmMs: short ? 500 : 1_000, measureMs: short ? 1_000 : 4_000 };
  const rounds = short ? 3 : 5;
  try {
    const nginx = await start(startNginx(nodePort));
    const forebay = await start(startForebay(nodePort));
    const results = await alternate(forebay, nginx, { ...times, connections: CONNECTIONS }, rounds);
    const alone = await alternate(forebay, direct, { ...times, connections: 1 }, rounds);
    const ours = medianOf(results.ours, "requestsPerSecond");
    const theirs = medianOf(results.yardstick, "requestsPerSecond");
    const nginxAlone = await measure(nginx, { ...times, connections: 1 });
    const directMs = median(alone.yardstick.map(({ medianMs }) => medianMs));
    return {
      claim: "requests that are never kept go through nearly as fast as through nginx",
      ratio: round(ours / theirs),
      ours: round(ours, 0),
      yardstick: round(theirs, 0),
      unit: "requests per second",
      unreadable: spread(results.yardstick.map(({ requestsPerSecond }) => requestsPerSecond)) > MAX_SPREAD,
      oursCpuMicroseconds: round(medianOf(results.ours, "cpuMicroseconds")),
      yardstickCpuMicroseconds: round(medianOf(results.yardstick, "cpuMicroseconds")),
      oursAddedMs: round(medianOf(alone.ours, "medianMs") - directMs),
      yardstickAddedMs: round(nginxAlone.medianMs - directMs),
    };
  } finally {
    await Promise.all(started.map((server) => server.end()));
    await node.end();
  }
};
