import { startRedis } from "../support/servers/redis.ts";
import { compareCached, oneBlock } from "./support/compareCached.ts";
import type { BenchOptions, BenchResult } from "./support/result.ts";

export const bench = async (options: BenchOptions): Promise<BenchResult> => {
  const ends: (() => unknown)[] = [];
  try {
    const { url } = await startRedis({ after: (end) => ends.unshift(end) });
    return await compareCached(
      { ...oneBlock, claim: "a block from Redis, memory off: at least 0.50", connections: 32, redisUrl: url },
      options,
    );
  } finally {
    for (const end of ends) {
      await end();
    }
  }
};
