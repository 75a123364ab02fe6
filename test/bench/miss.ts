import { startChild } from "./support/child.ts";
import { alternate, cpuResult, measure, median, medianOf, type Server } from "./support/compareServers.ts";
import { startForebay } from "./support/forebay.ts";
import { hasNginx, startNginx } from "./support/nginx.ts";
import { type BenchOptions, type BenchResult, round } from "./support/result.ts";

const CONNECTIONS = 64;
/** Different data in each request, so that no request is cached or coalesced. */
const BODY =
  '{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"0x1111111111111111111111111111111111111111","data":"0x{n}"},"latest"]}';

/** Starts node:http with undici, which forwards each body to the node unchanged. */
const startFloor = async (nodePort: number): Promise<Server> => {
  const child = startChild("floorServer.ts", [String(nodePort)]);
  const port = (await child.message()) as number;
  return { port, path: "/", pids: [child.pid], end: child.end };
};

/**
 * Sends calls that are not cached through forebay to a node that answers at once. The yardstick is node:http with undici,
 * the least that a proxy in Node.js does. nginx is the second one.
 */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  if (!hasNginx()) {
    throw new Error("this bench needs nginx: apt-get install nginx-light");
  }
  const node = startChild("verifiedNode.ts", ["16"]);
  const nodePort = (await node.message()) as number;
  const started: Server[] = [];
  const start = async (server: Promise<Server>): Promise<Server> => {
    started.push(await server);
    return server;
  };
  const direct = { port: nodePort, path: "/", pids: [], end: async () => {} };
  const times = { body: BODY, warmMs: short ? 500 : 1_000, measureMs: short ? 1_000 : 4_000 };
  const shape = { ...times, connections: CONNECTIONS };
  const rounds = short ? 3 : 5;
  try {
    const nginx = await start(startNginx(nodePort));
    const floor = await start(startFloor(nodePort));
    const forebay = await start(startForebay(nodePort));
    // The first seconds are not counted, because code is being compiled.
    await alternate(forebay, floor, shape, 1);
    const results = await alternate(forebay, floor, shape, rounds);
    const ofNginx = [await measure(nginx, shape)];
    const alone = await alternate(forebay, direct, { ...times, connections: 1 }, rounds);
    const compared = cpuResult(results);
    const nginxCpu = medianOf(ofNginx, "cpuMicroseconds");
    const nginxAlone = await measure(nginx, { ...times, connections: 1 });
    const directMs = median(alone.yardstick.map(({ medianMs }) => medianMs));
    return {
      claim: "a call that is not cached costs at most 1.54 times the CPU of node:http with undici, and 4 times nginx's",
      ...compared,
      nginxCpuMicroseconds: round(nginxCpu),
      timesNginx: round(compared.ours / nginxCpu),
      oursAddedMs: round(medianOf(alone.ours, "medianMs") - directMs),
      nginxAddedMs: round(nginxAlone.medianMs - directMs),
    };
  } finally {
    await Promise.all(started.map((server) => server.end()));
    await node.end();
  }
};
