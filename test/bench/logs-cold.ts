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
const SPAN_BLOCKS = 1_999;
/** The query whose CPU is measured: 26 responses of 1,000 logs, 14 MB in all. */
const CPU_BLOCKS = 50_000;
const CPU_EVERY = 2;

/** Measures the CPU of wide queries whose logs are not cached, in a process that has just started. */
const measureCpu = async (queries: number) => {
  const node = startChild("logsNode.ts");
  const server = startChild("logsServer.ts");
  const head = CPU_BLOCKS * (queries + 1);
  try {
    node.send({ head, every: CPU_EVERY, logsPerBlock: 1, latencyMs: 5, maxBlocks: MAX_BLOCKS, maxResults: 10_000 });
    const nodePort = Number(await node.message());
    server.send({ nodePort, head, rangesPerNode: 8, storeBytes: 64 * 1024 * 1024 });
    const port = Number(await server.message());
    const milliseconds: number[] = [];
    for (let at = 0; at < queries; at++) {
      const before = Number(await getText(port, "/cpu"));
      await readLogs(port, at * CPU_BLOCKS + 37, (at + 1) * CPU_BLOCKS + 36);
      milliseconds.push(Number(await getText(port, "/cpu")) - before);
    }
    const requests = Number(await getText(nodePort, "/requests")) / queries;
    return {
      cpuFirstMs: round(milliseconds[0] ?? 0),
      cpuMs: round(median(milliseconds)),
      requestsPerQuery: round(requests),
    };
  } finally {
    await Promise.all([node.end(), server.end()]);
  }
};

/** Compares a cold query over 100,000 blocks with ranges in sequence, and repeats the query. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const rounds = short ? 2 : 7;
  const head = BLOCKS * rounds;
  // Each response has 20 logs.
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
      ...(await measureCpu(short ? 8 : 16)),
    };
  } finally {
    await Promise.all([node.end(), server.end(), closeReaders()]);
  }
};
