import type { Hash } from "../ethereum/hex.ts";

/** The optional fields of the nodes' transactions. */
export interface TransactionFields {
  /** Reads a transaction of that block: one request at a time, and once in REFRESH_MS. */
  refresh(blockHash: Hash): Promise<void>;
  /** Whether the nodes' transactions have `blockTimestamp`. False until one was read. */
  readonly hasTimestamp: boolean;
}

/** A node can be replaced by another version. */
const REFRESH_MS = 600_000;

/** Creates the reader of the optional fields. It uses the nodes' own sealed transactions. */
export const createTransactionFields = (
  read: (method: string, params: readonly unknown[]) => Promise<unknown>,
  now: () => number,
): TransactionFields => {
  let hasTimestamp = false;
  let readAtMs = Number.NEGATIVE_INFINITY;
  let isReading = false;
  return {
    get hasTimestamp() {
      return hasTimestamp;
    },
    refresh: async (blockHash) => {
      if (isReading || now() - readAtMs < REFRESH_MS) {
        return;
      }
      isReading = true;
      try {
        const transaction = await read("eth_getTransactionByBlockHashAndIndex", [blockHash, "0x0"]);
        // An empty block has no transaction. The next head is tried.
        if (typeof transaction !== "object" || transaction === null) {
          return;
        }
        hasTimestamp = "blockTimestamp" in transaction && typeof transaction.blockTimestamp === "string";
        readAtMs = now();
      } finally {
        isReading = false;
      }
    },
  };
};
