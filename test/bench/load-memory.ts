import { startChild } from "./support/child.ts";
import { measure, type Server } from "./support/compareServers.ts";
import { firstAnswer, packForBench, residentMebibytes } from "./support/packed.ts";
import { type BenchOptions, type BenchResult, round } from "./support/result.ts";

const CLAIM = "After the load of docs/performance.md, resident memory is at most 250 MiB and flat";
const MAX_MEBIBYTES = 250;
const STARTS = 5;
/** Memory is flat if the rounds after the third add no more than this share. */
const MAX_GROWTH = 0.05;
const ROUNDS = 8;
const FLAT_FROM = 3;
const CONNECTIONS = 32;

const call = (id: number, method: string, params: readonly unknown[]) => ({ jsonrpc: "2.0", id, method, params });
const list = (length: number, item: (at: number) => object): string =>
  JSON.stringify(Array.from({ length }, (_, at) => item(at)));
/** New data in each call, so that no answer is asked for twice. */
const newCall = (at: number): object => {
  const data = `0x{n}${at.toString(16).padStart(64, "0")}`;
  return call(at, "eth_call", [{ to: `0x${"11".repeat(20)}`, data }, "latest"]);
};

/** The paths of the load: hits of 12 kB and of 106 kB, batches of hits, and calls that are never repeated. */
const BODIES = [
  JSON.stringify(call(1, "eth_getBlockByNumber", ["0x10", false])),
  JSON.stringify(call(1, "eth_getBlockByNumber", ["0x10", true])),
  list(100, (at) => call(at, "eth_getBlockByNumber", [`0x${(at + 1).toString(16)}`, false])),
  JSON.stringify(newCall(1)),
  list(20, newCall),
];

const loadRound = async (server: Server, measureMs: number): Promise<number> => {
  for (const body of BODIES) {
    await measure(server, { body, connections: CONNECTIONS, warmMs: 100, measureMs });
  }
  return residentMebibytes(server.pids[0] ?? 0);
};

/** Loads the package in rounds over all paths. `ours` is the resident memory after the last round, of the best start. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const node = startChild("verifiedNode.ts");
  const nodePort = Number(await node.message());
  const packed = packForBench();
  const runs: number[][] = [];
  try {
    for (let start = 0; start < (short ? 1 : STARTS); start++) {
      const server = await packed.start(nodePort);
      await firstAnswer(server.port);
      const values: number[] = [];
      for (let at = 0; at < ROUNDS; at++) {
        values.push(await loadRound(server, short ? 200 : 2_000));
      }
      runs.push(values);
      await server.end();
    }
  } finally {
    packed.remove();
    await node.end();
  }
  const after = (values: readonly number[]): number => Math.max(...values.slice(FLAT_FROM));
  const [best = []] = runs.toSorted((left, right) => after(left) - after(right));
  const growth = after(best) / (best[FLAT_FROM] ?? 0) - 1;
  return {
    claim: CLAIM,
    ratio: round(MAX_MEBIBYTES / after(best)),
    ours: round(after(best), 1),
    yardstick: MAX_MEBIBYTES,
    unit: "MiB",
    growth: round(growth),
    isFlat: growth <= MAX_GROWTH,
    rounds: best.map((value) => round(value, 0)).join(" "),
  };
};
