import { startRedis } from "../support/servers/redis.ts";
import { withLifespan } from "../support/servers/withLifespan.ts";
import { compareCached, oneBlock } from "./support/compareCached.ts";
import type { BenchOptions, BenchResult } from "./support/result.ts";

export const bench = (options: BenchOptions): Promise<BenchResult> =>
  withLifespan(async (t) => {
    const { url } = await startRedis(t);
    return compareCached(
      { ...oneBlock, claim: "a block from Redis, memory off: at least 0.50", connections: 32, redisUrl: url },
      options,
    );
  });
