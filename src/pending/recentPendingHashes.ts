import type { PendingBlock } from "../core/view.ts";
import type { Hash } from "../ethereum/hex.ts";

/** Pending blocks by the hashes that clients received recently. Each hash belongs to one prefix of a block. */
export interface RecentHashes {
  add(block: PendingBlock): void;
  find(hash: Hash): PendingBlock | undefined;
}

const TTL_MS = 10_000;
const MAX_BLOCKS = 1_024;

/** Creates the cache of pending blocks by hash. `now` returns milliseconds of a monotonic clock. */
export const createRecentHashes = (now: () => number): RecentHashes => {
  // In order of time.
  const cached = new Map<Hash, { readonly block: PendingBlock; readonly addedAtMs: number }>();
  const evict = (): void => {
    for (const [hash, { addedAtMs }] of cached) {
      if (cached.size <= MAX_BLOCKS && now() - addedAtMs <= TTL_MS) {
        return;
      }
      cached.delete(hash);
    }
  };
  return {
    add: (block) => {
      cached.delete(block.hash);
      cached.set(block.hash, { block, addedAtMs: now() });
      evict();
    },
    find: (hash) => {
      evict();
      return cached.get(hash)?.block;
    },
  };
};
