import { startChild } from "./support/child.ts";
import { median, spread } from "./support/compareServers.ts";
import { formatBlockLogs, type LogsNodeOptions } from "./support/logsNode.ts";
import type { LogsServerOptions } from "./support/logsServer.ts";
import { closeReaders, readLogs } from "./support/readLogs.ts";
import { type BenchOptions, type BenchResult, MAX_SPREAD, round } from "./support/result.ts";

/** About the size of the logs. */
const BYTES = 12_000_000;

/** Compares cached logs with a bare server that sends the same number of bytes. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const shape = { every: 10, logsPerBlock: 10, latencyMs: 0, maxBlocks: 2_000, maxResults: 10_000 };
  const perBlock = (formatBlockLogs(1_000, { ...shape, head: 0 }).length + 1) / shape.every;
  const head = Math.round(BYTES / perBlock);
  const nodeOptions: LogsNodeOptions = { ...shape, head };
  const node = startChild("logsNode.ts");
  const server = startChild("logsServer.ts");
  const bare = startChild("logsServer.ts");
  try {
    node.send(nodeOptions);
    const nodePort = Number(await node.message());
    const options: LogsServerOptions = { nodePort, head, rangesPerNode: 8, storeBytes: BYTES * 2 };
    server.send(options);
    const port = Number(await server.message());
    const { bytes: size } = await readLogs(port, 0, head);
    bare.send({ bareBytes: size });
    const barePort = Number(await bare.message());
    const ours: number[] = [];
    const yardstick: number[] = [];
    for (let at = -2; at < (short ? 5 : 31); at++) {
      const order = at % 2 === 0 ? ["ours", "bare"] : ["bare", "ours"];
      for (const which of order) {
        const { seconds, bytes: read } = await readLogs(which === "ours" ? port : barePort, 0, head);
        if (read !== size) {
          throw new Error(`${which}: ${read} bytes, not ${size}`);
        }
        if (at >= 0) {
          (which === "ours" ? ours : yardstick).push(seconds);
        }
      }
    }
    return {
      claim: "12 MB of logs from the cache, against a bare server sending the same bytes",
      ratio: round(median(yardstick) / median(ours)),
      ours: round(median(ours), 5),
      yardstick: round(median(yardstick), 5),
      unit: "seconds",
      bytes: size,
      unreadable: spread(yardstick) > MAX_SPREAD,
    };
  } finally {
    await Promise.all([node.end(), server.end(), bare.end(), closeReaders()]);
  }
};
