import { startChild } from "./support/child.ts";
import { median } from "./support/compareServers.ts";
import type { LogsNodeOptions } from "./support/logsNode.ts";
import type { LogsServerOptions } from "./support/logsServer.ts";
import { closeReaders, getText, readLogs } from "./support/readLogs.ts";
import { type BenchOptions, type BenchResult, round } from "./support/result.ts";

const BLOCKS = 100_000;
const LATENCY_MS = 50;
const MAX_BLOCKS = 2_000;
const SPANS = 32;
const SPAN_BLOCKS = 1_920;

/** Compares a cold query over 100,000 blocks with ranges in sequence, and repeats the query. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const rounds = short ? 2 : 7;
  const head = BLOCKS * rounds;
  // Each response has 1,000 logs.
  const nodeOptions: LogsNodeOptions = {
    head,
    every: 100,
    logsPerBlock: 1,
    latencyMs: LATENCY_MS,
    maxBlocks: MAX_BLOCKS,
    maxResults: 10_000,
  };
  const node = startChild("logsNode.ts");
  const server = startChild("logsServer.ts");
  try {
    node.send(nodeOptions);
    const nodePort = Number(await node.message());
    const options: LogsServerOptions = { nodePort, head, rangesPerNode: SPANS, storeBytes: 256 * 1024 * 1024 };
    server.send(options);
    const port = Number(await server.message());
    const cold: number[] = [];
    const warm: number[] = [];
    await readLogs(port, head - 10, head - 1);
    for (let at = 0; at < rounds; at++) {
      const from = at * BLOCKS;
      cold.push((await readLogs(port, from, from + BLOCKS - 1)).seconds);
      const before = await getText(nodePort, "/requests");
      for (let again = 0; again < 5; again++) {
        warm.push((await readLogs(port, from, from + BLOCKS - 1)).seconds);
      }
      if ((await getText(nodePort, "/requests")) !== before) {
        throw new Error("A repeated query asked the node");
      }
    }
    const serial = (Math.ceil(BLOCKS / MAX_BLOCKS) * LATENCY_MS) / 1000;
    const theory = (Math.ceil(Math.ceil(BLOCKS / SPAN_BLOCKS) / SPANS) * LATENCY_MS) / 1000;
    const ours = median(cold);
    return {
      claim: "100,000 blocks cold, against one span of 2,000 blocks after another",
      ratio: round(serial / ours),
      ours: round(ours),
      yardstick: round(serial),
      unit: "seconds",
      timesTheory: round(ours / theory),
      warmSeconds: round(median(warm), 5),
      warmTimesFaster: round(ours / median(warm)),
    };
  } finally {
    await Promise.all([node.end(), server.end(), closeReaders()]);
  }
};
