import { metric, rpc } from "../support/clients/rpc.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startProcesses } from "../support/servers/processes.ts";
import { oneBlock } from "./support/compareCached.ts";
import { alternate, type Server } from "./support/compareServers.ts";
import { cpuResult } from "./support/cpuResult.ts";
import { type BenchOptions, type BenchResult, round } from "./support/result.ts";

const HEIGHT = 1_100;
const CONNECTIONS = 32;
const COMPILE_MS = 4_000;

interface Started extends Server {
  readonly opsUrl: string;
}

const start = async (nodeUrl: string, processes: number): Promise<Started> => {
  const ends: (() => Promise<void>)[] = [];
  const config = { chains: [{ name: "chain", nodes: [{ url: nodeUrl }] }], server: { processes } };
  const forebay = await startProcesses({ after: (end) => ends.push(end) }, config);
  // Each process caches the block with its first request.
  await Promise.all(Array.from({ length: CONNECTIONS }, () => rpc(forebay.url, oneBlock.method, oneBlock.params)));
  return {
    port: Number(new URL(forebay.url).port),
    path: "/",
    pids: [forebay.pid, ...(await forebay.servingPids())],
    opsUrl: forebay.opsUrl,
    end: async () => {
      await Promise.all(ends.map((end) => end()));
    },
  };
};

const responsesOf = (opsUrl: string): Promise<number[]> =>
  Promise.all([1, 2].map((process) => metric(opsUrl, "forebay_process_responses_total", `process="${process}"`)));

/** Compares the CPU time of a cached request on two serving processes, the main process included, with that on one process. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const startSeconds = Math.floor(Date.now() / 1_000) - 2 * HEIGHT;
  const chain = createFakeChain({ height: HEIGHT, startSeconds });
  const node = await createFakeNode({ chain, handlers: oneBlock.handlers(chain) });
  const started: Started[] = [];
  try {
    const two = await start(node.url, 2);
    started.push(two);
    const one = await start(node.url, 1);
    started.push(one);
    const load = {
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: oneBlock.method, params: oneBlock.params }),
      connections: CONNECTIONS,
      warmMs: short ? 500 : 1_000,
      measureMs: short ? 1_000 : 4_000,
    };
    // The first seconds are not counted, because code is being compiled.
    await alternate(two, one, { ...load, measureMs: COMPILE_MS }, 1);
    const before = await responsesOf(two.opsUrl);
    const results = await alternate(two, one, load, short ? 3 : 5);
    const after = await responsesOf(two.opsUrl);
    const counts = after.map((count, index) => count - (before[index] ?? 0));
    return {
      claim:
        "a cached block costs at most 1.1 times the CPU with two processes, and each has 40 to 60 % of the requests",
      ...cpuResult(results),
      smallerShare: round(Math.min(...counts) / counts.reduce((sum, count) => sum + count, 0)),
    };
  } finally {
    await Promise.all(started.map((server) => server.end()));
    await node.close();
  }
};
