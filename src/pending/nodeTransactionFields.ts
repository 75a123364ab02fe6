import { formatQuantity, type Hash } from "../ethereum/hex.ts";
import { DEPOSIT_TYPE } from "../ethereum/transaction.ts";
import type { DepositFields } from "./applyFlashblock.ts";

/** The optional fields of the nodes' transactions and receipts. */
export interface TransactionFields {
  /** Reads a transaction of that block: one request at a time, and seldom. */
  refresh(blockHash: Hash): Promise<void>;
  /** Whether the nodes' transactions have `blockTimestamp`. False until one was read. */
  readonly hasTimestamp: boolean;
  /** The optional fields of deposits: op-reth has some that op-geth lacks. Undefined until a deposit was read. */
  readonly deposit: DepositFields | undefined;
}

/** A node can be replaced by another version. */
const REFRESH_MS = 600_000;
/** After two failures. Each further one doubles it, so that a chain of empty blocks costs little. */
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;

const retryMs = (failures: number): number =>
  failures < 2 ? 0 : Math.min(RETRY_MS * 2 ** (failures - 2), MAX_RETRY_MS);

/** Creates the reader of the optional fields. It uses the nodes' own sealed transactions. */
export const createTransactionFields = (
  read: (method: string, params: readonly unknown[]) => Promise<unknown>,
  now: () => number,
): TransactionFields => {
  let hasTimestamp = false;
  let deposit: DepositFields | undefined;
  let dueMs = Number.NEGATIVE_INFINITY;
  let failures = 0;
  let isReading = false;
  return {
    get hasTimestamp() {
      return hasTimestamp;
    },
    get deposit() {
      return deposit;
    },
    refresh: async (blockHash) => {
      if (isReading || now() < dueMs) {
        return;
      }
      isReading = true;
      failures++;
      try {
        const transaction = await read("eth_getTransactionByBlockHashAndIndex", [blockHash, "0x0"]);
        // An empty block has no transaction. A later head is tried.
        if (typeof transaction === "object" && transaction !== null) {
          hasTimestamp = "blockTimestamp" in transaction && typeof transaction.blockTimestamp === "string";
          deposit = await readDeposit(read, transaction);
          failures = 0;
        }
      } finally {
        dueMs = now() + (failures === 0 ? REFRESH_MS : retryMs(failures));
        isReading = false;
      }
    },
  };
};

/** Returns undefined if the transaction is no deposit, or if its receipt is not known. */
const readDeposit = async (
  read: (method: string, params: readonly unknown[]) => Promise<unknown>,
  transaction: object,
): Promise<DepositFields | undefined> => {
  if (!("type" in transaction && transaction.type === formatQuantity(DEPOSIT_TYPE) && "hash" in transaction)) {
    return undefined;
  }
  const receipt = await read("eth_getTransactionReceipt", [transaction.hash]);
  return typeof receipt === "object" && receipt !== null
    ? { hasYParity: "yParity" in transaction, receipt: Object.keys(receipt) }
    : undefined;
};
