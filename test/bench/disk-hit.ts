import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startRedis } from "../support/servers/redis.ts";
import { COMPILE_MS, HEIGHT, oneBlock, startCached, warm } from "./support/compareCached.ts";
import { alternate, medianOf, type Server, spread } from "./support/compareServers.ts";
import { mainThreadOf } from "./support/cpuTime.ts";
import { type BenchOptions, type BenchResult, MAX_SPREAD, round } from "./support/result.ts";

/** Compares the CPU time of the serving thread for a block from the data folder with one from Redis on this machine. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const ends: (() => unknown)[] = [];
  try {
    const folder = await mkdtemp(join(tmpdir(), "forebay-bench-"));
    ends.unshift(() => rm(folder, { recursive: true }));
    const redis = await startRedis({ after: (end) => ends.unshift(end) });
    const chain = createFakeChain({ height: HEIGHT, startSeconds: Math.floor(Date.now() / 1_000) - 2 * HEIGHT });
    const node = await createFakeNode({ chain, handlers: oneBlock.handlers(chain) });
    ends.unshift(() => node.close());
    const start = async (store: {
      readonly redisUrl: string | undefined;
      readonly dataDir?: string;
    }): Promise<Server> => {
      const { server, url, child } = await startCached({ nodeUrl: node.url, ...store });
      ends.unshift(() => server.end());
      await warm(url, oneBlock);
      return { ...server, thread: mainThreadOf(child.pid) };
    };
    const ours = await start({ redisUrl: undefined, dataDir: join(folder, "data") });
    const theirs = await start({ redisUrl: redis.url });
    const load = {
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: oneBlock.method, params: oneBlock.params }),
      connections: 32,
      warmMs: short ? 500 : 1_000,
      measureMs: short ? 1_000 : 4_000,
    };
    // The first seconds are not counted, because code is being compiled.
    await alternate(ours, theirs, { ...load, measureMs: short ? load.measureMs : COMPILE_MS }, 1);
    const results = await alternate(ours, theirs, load, short ? 3 : 7);
    const mine = medianOf(results.ours, "cpuMicroseconds");
    const yardstick = medianOf(results.yardstick, "cpuMicroseconds");
    return {
      claim: "a block from the data folder, memory off, beside one from Redis: at least 0.67",
      ratio: round(yardstick / mine),
      ours: round(mine),
      yardstick: round(yardstick),
      unit: "microseconds of CPU of the serving thread per request",
      unreadable: spread(results.yardstick.map(({ cpuMicroseconds }) => cpuMicroseconds)) > MAX_SPREAD,
      oursMedianMs: round(medianOf(results.ours, "medianMs")),
      yardstickMedianMs: round(medianOf(results.yardstick, "medianMs")),
    };
  } finally {
    for (const end of ends) {
      await end();
    }
  }
};
