import { startChild } from "./support/child.ts";
import { alternate, medianOf, type Server } from "./support/compareServers.ts";
import { cpuResult } from "./support/cpuResult.ts";
import { type BenchOptions, type BenchResult, round } from "./support/result.ts";

const CONNECTIONS = 32;
const BODY = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}';

const start = async (which: "ours" | "bare"): Promise<Server> => {
  const child = startChild("echoServer.ts", [which]);
  const port = (await child.message()) as number;
  return { port, path: "/", pids: [child.pid], end: child.end };
};

/** CPU time of the server above that of node:http. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const ours = await start("ours");
  const bare = await start("bare");
  try {
    const shape = {
      body: BODY,
      connections: CONNECTIONS,
      warmMs: short ? 500 : 1_000,
      measureMs: short ? 1_000 : 4_000,
    };
    const results = await alternate(ours, bare, shape, short ? 3 : 7);
    return {
      claim: "a constant method costs little more CPU than a bare node:http server",
      ...cpuResult(results),
      oursMedianMs: round(medianOf(results.ours, "medianMs")),
      yardstickMedianMs: round(medianOf(results.yardstick, "medianMs")),
    };
  } finally {
    await Promise.all([ours.end(), bare.end()]);
  }
};
