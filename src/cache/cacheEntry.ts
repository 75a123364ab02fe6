import type { BlockId, Heads } from "../core/heads.ts";
import type { RetentionClass } from "../core/rpcSource.ts";

/** A cached response. */
export interface CacheEntry {
  /** UTF-8 JSON text of the result. */
  readonly body: Uint8Array;
  readonly block?: BlockId;
  /** Whether the block was final when the response was cached. */
  readonly final: boolean;
  /** Milliseconds since 1970. */
  readonly storedAtMs: number;
}

/**
 * Whether a block is canonical in a view. The block ring decides for its own blocks.
 * A block below the ring is canonical if it was final when its response was cached.
 */
export const isCanonical = (block: BlockId, wasFinal: boolean, heads: Heads): boolean => {
  const canonicalBlock = heads.at(block.number);
  if (canonicalBlock !== undefined) return canonicalBlock.hash === block.hash;
  return wasFinal && heads.finalized !== undefined && block.number <= heads.finalized.number;
};

/**
 * Whether an entry is valid. By transaction hash, its block must be canonical. Any other key contains all dependencies.
 */
export const isValid = (entry: CacheEntry, retention: RetentionClass, heads: Heads): boolean =>
  retention !== "byTransaction" || (entry.block !== undefined && isCanonical(entry.block, entry.final, heads));

/** Retention classes that replicas share through Redis. The others are cached in memory only. */
const SHARED: ReadonlySet<RetentionClass> = new Set(["byHash", "final", "recent", "byTransaction"]);

/** Whether responses of a retention class are cached in Redis. */
export const isShared = (retention: RetentionClass): boolean => SHARED.has(retention);

const FINAL_SECONDS = 7 * 86_400;
const RECENT_SECONDS = 3_600;

/** Returns the time to live in Redis, in seconds. */
export const redisSeconds = (entry: CacheEntry): number => (entry.final ? FINAL_SECONDS : RECENT_SECONDS);
