import { setTimeout as delay } from "node:timers/promises";
import { startChild } from "../bench/support/child.ts";
import { formatBlockLogs, type LogsNodeOptions } from "../bench/support/logsNode.ts";
import type { LogsServerOptions } from "../bench/support/logsServer.ts";
import { closeReaders, getText, readLogs } from "../bench/support/readLogs.ts";
import { median } from "../bench/support/result.ts";

const LOGS = 1_000_000;
const SHAPE = { every: 1, logsPerBlock: 100, latencyMs: 5, maxBlocks: 10_000, maxResults: 10_000 };
const BLOCKS = LOGS / SHAPE.logsPerBlock;
const MAX_RESIDENT_GROWTH_BYTES = 300 * 1024 * 1024;
const SAMPLE_MS = 250;
/** Bytes a second of a slow reader. */
const SLOW_BYTES_PER_SECOND = 20_000_000;
const NEEDLE = Buffer.from('"logIndex"');

/** Counts a text in a stream, also if it is split over two chunks. */
const createCounter = () => {
  let count = 0;
  let rest = Buffer.alloc(0);
  return {
    add: (chunk: Buffer) => {
      const text = Buffer.concat([rest, chunk]);
      let at = text.indexOf(NEEDLE);
      let end = 0;
      for (; at !== -1; at = text.indexOf(NEEDLE, end)) {
        count++;
        end = at + NEEDLE.length;
      }
      rest = Buffer.from(text.subarray(Math.max(end, text.length - NEEDLE.length + 1)));
    },
    count: () => count,
  };
};

/** Sends a million logs in one response to a fast and to a slow reader, during small requests of others. */
export const long = async () => {
  const nodeOptions: LogsNodeOptions = { ...SHAPE, head: BLOCKS + 1_000 };
  const node = startChild("logsNode.ts");
  const server = startChild("logsServer.ts");
  const results: Record<string, unknown> = {};
  try {
    node.send(nodeOptions);
    const nodePort = Number(await node.message());
    const options: LogsServerOptions = { nodePort, head: nodeOptions.head, rangesPerNode: 8, storeBytes: 0 };
    server.send(options);
    const port = Number(await server.message());
    await readLogs(port, BLOCKS + 1, BLOCKS + 2);
    const idle = Number(await getText(port, "/memory"));
    results.logBytes = formatBlockLogs(1_000, nodeOptions).length / SHAPE.logsPerBlock;

    for (const reader of ["fast", "slow"] as const) {
      let isDone = false;
      let most = 0;
      const small: number[] = [];
      const watch = (async () => {
        while (!isDone) {
          most = Math.max(most, Number(await getText(port, "/memory")));
          small.push((await readLogs(port, BLOCKS + 5, BLOCKS + 6, undefined, "other")).seconds);
          await delay(SAMPLE_MS);
        }
      })();
      const counter = createCounter();
      const slowly = async (chunk: Buffer) => {
        counter.add(chunk);
        if (reader === "slow") {
          await delay((chunk.length / SLOW_BYTES_PER_SECOND) * 1000);
        }
      };
      const { bytes, seconds, firstByteSeconds } = await readLogs(port, 0, BLOCKS - 1, slowly);
      isDone = true;
      await watch;
      const growth = most - idle;
      results[reader] = {
        logs: counter.count(),
        bytes,
        seconds: Number(seconds.toFixed(2)),
        firstByteSeconds: Number(firstByteSeconds.toFixed(3)),
        residentGrowthBytes: growth,
        otherCallersMedianMs: Number((median(small) * 1000).toFixed(1)),
        otherCallersMostMs: Number((Math.max(...small) * 1000).toFixed(1)),
      };
      if (counter.count() !== LOGS) {
        throw new Error(`${reader}: ${counter.count()} logs, not ${LOGS}`);
      }
      if (growth > MAX_RESIDENT_GROWTH_BYTES) {
        throw new Error(`${reader}: resident memory grew by ${growth} bytes`);
      }
    }
    return { passed: true, ...results };
  } finally {
    await Promise.all([node.end(), server.end(), closeReaders()]);
  }
};
