export interface PruneHorizon {
  /** The node was seen to lack data of that block. */
  recordPruned(number: bigint, head: bigint | undefined): void;
  /** The lowest block whose data it was not seen to lack. */
  oldest(head: bigint | undefined): bigint;
}

/** A node may be replaced by one that holds more. */
const FORGET_AFTER_MS = 600_000;

/** How many blocks back a pruned node's data reach: its window moves on with its head. */
export const createPruneHorizon = (nowMs: () => number = () => performance.now()): PruneHorizon => {
  let blocks: bigint | undefined;
  let learnedAtMs = 0;
  return {
    recordPruned: (number, head) => {
      const seen = (head ?? number) - number;
      if (seen > 0n && (blocks === undefined || seen < blocks)) {
        blocks = seen;
        learnedAtMs = nowMs();
      }
    },
    oldest: (head) => {
      if (blocks !== undefined && nowMs() - learnedAtMs > FORGET_AFTER_MS) {
        blocks = undefined;
      }
      return blocks === undefined || head === undefined || head < blocks ? 0n : head - blocks + 1n;
    },
  };
};
