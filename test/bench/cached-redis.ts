import { startRedis } from "../support/redis.ts";
import { compareCached } from "./compareCached.ts";
import type { BenchOptions, BenchResult } from "./result.ts";

export const bench = async (options: BenchOptions): Promise<BenchResult> => {
  const ends: (() => unknown)[] = [];
  try {
    const { url } = await startRedis({ after: (end) => ends.unshift(end) });
    return await compareCached(
      { claim: "a block from Redis, memory off: at least 0.50", bytes: 1_500, connections: 32, redisUrl: url },
      options,
    );
  } finally {
    for (const end of ends) await end();
  }
};
