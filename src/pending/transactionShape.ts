import type { Hash } from "../ethereum/hex.ts";

export interface TransactionShape {
  /** Asks a node for a transaction of that block, at most one at a time and once in RELEARN_MS. */
  learn(blockHash: Hash): Promise<void>;
  /** The nodes' transactions have `blockTimestamp`; false until one was seen. */
  readonly hasTimestamp: boolean;
}

/** A node may be replaced by another version. */
const RELEARN_MS = 600_000;

/** Learns from the nodes' own sealed transactions which optional fields they have. */
export const createTransactionShape = (
  read: (method: string, params: readonly unknown[]) => Promise<unknown>,
  now: () => number,
): TransactionShape => {
  let hasTimestamp = false;
  let learnedAtMs = Number.NEGATIVE_INFINITY;
  let isAsking = false;
  return {
    get hasTimestamp() {
      return hasTimestamp;
    },
    learn: async (blockHash) => {
      if (isAsking || now() - learnedAtMs < RELEARN_MS) return;
      isAsking = true;
      try {
        const transaction = await read("eth_getTransactionByBlockHashAndIndex", [blockHash, "0x0"]);
        // An empty block has none: the next one is asked for.
        if (typeof transaction !== "object" || transaction === null) return;
        hasTimestamp = "blockTimestamp" in transaction && typeof transaction.blockTimestamp === "string";
        learnedAtMs = now();
      } finally {
        isAsking = false;
      }
    },
  };
};
