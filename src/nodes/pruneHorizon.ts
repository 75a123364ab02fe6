export interface PruneHorizon {
  /** Records that the node does not have the data of this block. */
  recordPruned(number: bigint, head: bigint | undefined): void;
  /** Returns the lowest block whose data the node may have. */
  oldest(head: bigint | undefined): bigint;
}

/** The record expires, because a node may be replaced by one with more data. */
const FORGET_AFTER_MS = 600_000;

/** Learns a pruned node's prune horizon as a distance in blocks: the horizon moves with the node's head. */
export const createPruneHorizon = (nowMs: () => number = () => performance.now()): PruneHorizon => {
  let blocks: bigint | undefined;
  let learnedAtMs = 0;
  return {
    recordPruned: (number, head) => {
      const distance = (head ?? number) - number;
      if (distance > 0n && (blocks === undefined || distance < blocks)) {
        blocks = distance;
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
