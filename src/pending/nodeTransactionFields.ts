import { formatQuantity, type Hash } from "../ethereum/hex.ts";
import { DEPOSIT_TYPE } from "../ethereum/transaction.ts";
import type { DepositFields } from "./applyMessage.ts";

/** A node can be replaced by another version. */
const REFRESH_MS = 600_000;
/** After two failures. Each further one doubles it, so that a chain of empty blocks costs little. */
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;

const retryMs = (failures: number): number =>
  failures < 2 ? 0 : Math.min(RETRY_MS * 2 ** (failures - 2), MAX_RETRY_MS);

/** Returns the parsed result of one call from a node. */
type ReadNode = (method: string, params: readonly unknown[]) => Promise<unknown>;

/** Reads the optional fields of the nodes' transactions and receipts. It uses the nodes' own sealed transactions. */
export class TransactionFields {
  readonly #read: ReadNode;
  readonly #nowMs: () => number;
  #hasTimestamp = false;
  #deposit: DepositFields | undefined;
  #dueMs = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #isReading = false;

  constructor(read: ReadNode, nowMs: () => number) {
    this.#read = read;
    this.#nowMs = nowMs;
  }

  /** Whether the nodes' transactions have `blockTimestamp`. False until one was read. */
  get hasTimestamp(): boolean {
    return this.#hasTimestamp;
  }

  /** The optional fields of deposits: op-reth has some that op-geth lacks. Undefined until a deposit was read. */
  get deposit(): DepositFields | undefined {
    return this.#deposit;
  }

  /** Reads a transaction of that block: one request at a time, and seldom. */
  async refresh(blockHash: Hash): Promise<void> {
    if (this.#isReading || this.#nowMs() < this.#dueMs) {
      return;
    }
    this.#isReading = true;
    this.#failures++;
    try {
      const transaction = await this.#read("eth_getTransactionByBlockHashAndIndex", [blockHash, "0x0"]);
      // An empty block has no transaction. A later head is tried.
      if (typeof transaction === "object" && transaction !== null) {
        this.#hasTimestamp = "blockTimestamp" in transaction && typeof transaction.blockTimestamp === "string";
        this.#deposit = await readDeposit(this.#read, transaction);
        this.#failures = 0;
      }
    } finally {
      this.#dueMs = this.#nowMs() + (this.#failures === 0 ? REFRESH_MS : retryMs(this.#failures));
      this.#isReading = false;
    }
  }
}

/** Returns undefined if the transaction is no deposit, or if its receipt is not known. */
const readDeposit = async (read: ReadNode, transaction: object): Promise<DepositFields | undefined> => {
  if (!("type" in transaction && transaction.type === formatQuantity(DEPOSIT_TYPE) && "hash" in transaction)) {
    return undefined;
  }
  const receipt = await read("eth_getTransactionReceipt", [transaction.hash]);
  return typeof receipt === "object" && receipt !== null
    ? { hasYParity: "yParity" in transaction, receipt: Object.keys(receipt) }
    : undefined;
};
