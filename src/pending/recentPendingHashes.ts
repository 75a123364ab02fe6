import type { PendingBlock } from "../core/view.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { UnverifiedReason } from "./execution.ts";
import { pendingBlockState } from "./pendingBlock.ts";

/** Pending blocks by the hashes that clients received recently. Each hash belongs to one prefix of a block. */
export interface RecentHashes {
  /** Adds a block, unless its execution contradicts it. A node answers for that hash. */
  add(block: PendingBlock): void;
  find(hash: Hash): PendingBlock | undefined;
}

/** The execution shows that a field of a message is wrong. The hash may be that of another block. */
const CONTRADICTED: ReadonlySet<UnverifiedReason | undefined> = new Set(["gas", "bloom", "receiptsRoot"]);

const isContradicted = (block: PendingBlock): boolean =>
  pendingBlockState(block).parts.some(({ unverified }) => CONTRADICTED.has(unverified));

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
      if (isContradicted(block)) {
        return;
      }
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
