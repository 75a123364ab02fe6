import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startRedis } from "../support/servers/redis.ts";
import { withLifespan } from "../support/servers/withLifespan.ts";
import { COMPILE_MS, HEIGHT, oneBlock, startCached, warm } from "./support/compareCached.ts";
import { alternate, cpuResult, medianOf, type Server } from "./support/compareServers.ts";
import { mainThreadOf } from "./support/cpuTime.ts";
import { type BenchOptions, type BenchResult, round } from "./support/result.ts";

/** Compares the CPU time of the serving thread for a block from the data folder with one from Redis on this machine. */
export const bench = ({ short }: BenchOptions): Promise<BenchResult> =>
  withLifespan(async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "forebay-bench-"));
    t.after(() => rm(folder, { recursive: true }));
    const redis = await startRedis(t);
    const chain = createFakeChain({ height: HEIGHT, startSeconds: Math.floor(Date.now() / 1_000) - 2 * HEIGHT });
    const node = await createFakeNode({ chain, handlers: oneBlock.handlers(chain) });
    t.after(() => node.close());
    const start = async (store: {
      readonly redisUrl: string | undefined;
      readonly dataDir?: string;
    }): Promise<Server> => {
      const { server, url, child } = await startCached({ nodeUrl: node.url, ...store });
      t.after(() => server.end());
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
    return {
      claim: "a block from the data folder, memory off, beside one from Redis: at least 0.67",
      ...cpuResult(results),
      unit: "microseconds of CPU of the serving thread per request",
      oursMedianMs: round(medianOf(results.ours, "medianMs")),
      yardstickMedianMs: round(medianOf(results.yardstick, "medianMs")),
    };
  });
