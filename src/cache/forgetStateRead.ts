import type { BlockId, Heads } from "../core/heads.ts";
import { RETENTION } from "../core/retention.ts";
import type { CachedOptions } from "./cached.ts";
import { requestKey } from "./cacheKey.ts";

/** A read of state at a block, by its canonical params without the block. */
export interface StateReadAt {
  readonly canonicalParams: string;
  readonly block: BlockId;
}

/** A block in the ring has the first class until it is final, and then the second one. */
const CLASSES = ["recentState", "final"] as const;

/**
 * Removes the cached response to a read of state at a block, in memory and Redis. Other processes keep it in memory. The key of a
 * recent block ends when the block is final. No mark of the node ends it earlier: that would end all its values for one wrong hash.
 */
export const forgetStateRead = (
  { prefix, memory, redis }: Pick<CachedOptions, "prefix" | "memory" | "redis">,
  read: StateReadAt,
  heads: Heads,
): void => {
  for (const retention of CLASSES) {
    const key = requestKey(prefix, { ...read, retention }, heads);
    if (key !== undefined) {
      memory.delete(key);
      if (RETENTION[retention].redisSeconds !== undefined) {
        redis?.delete(key);
      }
    }
  }
};
