import type { PendingBlock } from "../core/view.ts";
import type { Hash } from "../ethereum/hex.ts";

/** Blocks by the hashes that were given out a short while ago, each for its own prefix. */
export interface RecentHashes {
  add(block: PendingBlock): void;
  find(hash: Hash): PendingBlock | undefined;
}

const KEPT_MS = 10_000;
const MAX_KEPT = 1_024;

/** `now`: milliseconds of a clock that does not go back. */
export const createRecentHashes = (now: () => number): RecentHashes => {
  // In order of their time.
  const kept = new Map<Hash, { readonly block: PendingBlock; readonly addedAtMs: number }>();
  const forget = (): void => {
    for (const [hash, { addedAtMs }] of kept) {
      if (kept.size <= MAX_KEPT && now() - addedAtMs <= KEPT_MS) return;
      kept.delete(hash);
    }
  };
  return {
    add: (block) => {
      kept.delete(block.hash);
      kept.set(block.hash, { block, addedAtMs: now() });
      forget();
    },
    find: (hash) => {
      forget();
      return kept.get(hash)?.block;
    },
  };
};
