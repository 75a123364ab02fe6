import type { Heads } from "../core/heads.ts";
import type { Body } from "../core/view.ts";
import { type Hash, isHash } from "../ethereum/hex.ts";
import type { BlockPart } from "./applyMessage.ts";
import type { BlockFormatter } from "./blockFormatter.ts";
import { removedLogs } from "./publishedPreconfirmations.ts";
import type { Passed } from "./reconcile.ts";

interface DroppedTransactionsOptions {
  /** Returns the parsed result of one call from a node. Rejects if no node answers. */
  readonly read: (method: string, params: readonly unknown[]) => Promise<unknown>;
  readonly formatted: BlockFormatter;
  /** Called with the dropped transactions, and with their logs as removed logs. */
  readonly onDropped: (hashes: readonly Hash[], removed: readonly Body[]) => void;
}

const MAX_REPLACED = 50_000;

const hashesOf = (block: unknown): readonly Hash[] | undefined => {
  if (typeof block !== "object" || block === null || !("transactions" in block)) {
    return undefined;
  }
  const { transactions } = block;
  return Array.isArray(transactions) ? transactions.filter(isHash) : undefined;
};

/** Detects dropped transactions: pre-confirmed, but not in the sealed block. */
export class DroppedTransactions {
  readonly #options: DroppedTransactionsOptions;
  /** Published and then replaced transactions, with the number of their pending block. They may still be sealed. */
  readonly #replaced = new Map<Hash, bigint>();

  constructor(options: DroppedTransactionsOptions) {
    this.#options = options;
  }

  /** Marks the transactions of published flashblocks that were replaced. */
  markMissing(number: bigint, parts: readonly BlockPart[]): void {
    for (const { hash } of parts.flatMap(({ transactions }) => transactions)) {
      if (this.#replaced.size < MAX_REPLACED) {
        this.#replaced.set(hash, number);
      }
    }
  }

  /** Unmarks transactions that are in the pending blocks. */
  unmark(parts: readonly BlockPart[]): void {
    if (this.#replaced.size === 0) {
      return;
    }
    for (const { hash } of parts.flatMap(({ transactions }) => transactions)) {
      this.#replaced.delete(hash);
    }
  }

  /**
   * Compares sealed blocks with the pending blocks that they replaced. Sends requests only if transactions may be dropped.
   * `onDifference` is called if a sealed block does not begin with the transactions of its pending block.
   */
  async resolve(heads: Heads, passed: readonly Passed[], onDifference: (passed: Passed) => void): Promise<void> {
    const differing = passed.filter(({ differences }) => differences.includes("transactions"));
    const numbers = new Set(differing.map(({ block }) => block.environment.number));
    for (const number of this.#replaced.values()) {
      if (number <= heads.latest.number) {
        numbers.add(number);
      }
    }
    for (const number of numbers) {
      const sealedHash = heads.at(number)?.hash;
      const differingBlock = differing.find(({ block }) => block.environment.number === number);
      if (sealedHash) {
        await this.#confirmDropped(number, sealedHash, differingBlock, onDifference);
      }
    }
  }

  async #confirmDropped(
    number: bigint,
    sealedHash: Hash,
    passed: Passed | undefined,
    onDifference: (passed: Passed) => void,
  ): Promise<void> {
    const { read, formatted, onDropped } = this.#options;
    const missing = [...this.#replaced].filter(([, pendingNumber]) => pendingNumber <= number).map(([hash]) => hash);
    const hashes = hashesOf(await read("eth_getBlockByHash", [sealedHash, false]));
    if (!hashes) {
      return;
    }
    for (const hash of missing) {
      this.#replaced.delete(hash);
    }
    const sealed = new Set(hashes);
    const preconfirmed = passed?.block.parts.flatMap(({ transactions }) => transactions) ?? [];
    // A block may be sealed before its last flashblocks arrive: then the pending block is a prefix of it.
    if (passed && preconfirmed.some(({ hash }, position) => hashes[position] !== hash)) {
      onDifference(passed);
    }
    const dropped = preconfirmed.filter(({ hash }) => !sealed.has(hash));
    const all = [...dropped.map(({ hash }) => hash), ...missing.filter((hash) => !sealed.has(hash))];
    if (all.length === 0) {
      return;
    }
    const removed = passed && dropped.length > 0 ? removedLogs(formatted.format(passed.block), dropped) : [];
    onDropped(all, removed);
  }
}
