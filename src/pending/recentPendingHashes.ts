import type { Hash } from "../ethereum/hex.ts";
import type { PendingBlockState, PendingChain } from "./applyFlashblock.ts";
import type { UnverifiedReason } from "./execution.ts";
import type { PendingBlocks } from "./pendingBlock.ts";

/** Pending chains by the hashes of their newest blocks that clients received recently. Each hash belongs to one prefix of a block. */
export interface RecentHashes {
  /** Adds a chain, unless the execution of its newest block contradicts that block. A node answers for that hash. */
  add(chain: PendingChain): void;
  find(hash: Hash): PendingChain | undefined;
}

/** The execution shows that a field of a message is wrong. The hash may be that of another block. */
const CONTRADICTED: ReadonlySet<UnverifiedReason | undefined> = new Set(["gas", "bloom", "receiptsRoot"]);

const isContradicted = ({ parts }: PendingBlockState): boolean =>
  parts.some(({ unverified }) => CONTRADICTED.has(unverified));

const TTL_MS = 10_000;
const MAX_BLOCKS = 1_024;

/** Creates the cache of pending chains by hash. `now` returns milliseconds of a monotonic clock. */
export const createRecentHashes = (formatted: PendingBlocks, now: () => number): RecentHashes => {
  // In order of time.
  const cached = new Map<Hash, { readonly chain: PendingChain; readonly addedAtMs: number }>();
  const evict = (): void => {
    for (const [hash, { addedAtMs }] of cached) {
      if (cached.size <= MAX_BLOCKS && now() - addedAtMs <= TTL_MS) {
        return;
      }
      cached.delete(hash);
    }
  };
  return {
    add: (chain) => {
      const newest = chain.blocks.at(-1);
      if (newest === undefined || isContradicted(newest)) {
        return;
      }
      const { hash } = formatted.format(newest);
      cached.delete(hash);
      cached.set(hash, { chain, addedAtMs: now() });
      evict();
    },
    find: (hash) => {
      evict();
      return cached.get(hash)?.chain;
    },
  };
};
