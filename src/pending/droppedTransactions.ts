import { type Hash, isHash } from "../ethereum/hex.ts";
import type { Passed } from "./reconcile.ts";

interface DroppedTransactionsOptions {
  /** Returns the parsed result of one call from a node. Rejects if no node answers. */
  readonly read: (method: string, params: readonly unknown[]) => Promise<unknown>;
  readonly onDropped: (hashes: readonly Hash[]) => void;
}

const hashesOf = (block: unknown): readonly Hash[] | undefined => {
  if (typeof block !== "object" || block === null || !("transactions" in block)) {
    return undefined;
  }
  const { transactions } = block;
  return Array.isArray(transactions) ? transactions.filter(isHash) : undefined;
};

/** Detects dropped transactions: in the pending block that was shown last, but not in the sealed block of its number. */
export class DroppedTransactions {
  readonly #options: DroppedTransactionsOptions;

  constructor(options: DroppedTransactionsOptions) {
    this.#options = options;
  }

  /**
   * Compares sealed blocks with the pending blocks that they replaced. Reads only those whose transactions differ.
   * `onDifference` is called if a sealed block does not begin with the transactions of its pending block.
   */
  async resolve(passed: readonly Passed[], onDifference: (passed: Passed) => void): Promise<void> {
    for (const each of passed.filter(({ differences }) => differences.includes("transactions"))) {
      await this.#confirmDropped(each, onDifference);
    }
  }

  async #confirmDropped(passed: Passed, onDifference: (passed: Passed) => void): Promise<void> {
    const { read, onDropped } = this.#options;
    const { block, sealed } = passed;
    const hashes = sealed && hashesOf(await read("eth_getBlockByHash", [sealed.hash, false]));
    if (!hashes) {
      return;
    }
    const preconfirmed = block.parts.flatMap(({ transactions }) => transactions.map(({ hash }) => hash));
    // A block may be sealed before its last flashblocks arrive: then the pending block is a prefix of it.
    if (preconfirmed.some((hash, position) => hashes[position] !== hash)) {
      onDifference(passed);
    }
    const known = new Set(hashes);
    const dropped = preconfirmed.filter((hash) => !known.has(hash));
    if (dropped.length > 0) {
      onDropped(dropped);
    }
  }
}
