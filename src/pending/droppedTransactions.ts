import type { Heads } from "../core/heads.ts";
import type { Body } from "../core/view.ts";
import { type Hash, isHash } from "../ethereum/hex.ts";
import type { FlashblockPart } from "./applyFlashblock.ts";
import { showBlock } from "./pendingView.ts";
import { removedLogs } from "./publishedPreconfirmations.ts";
import type { Passed } from "./reconcile.ts";

export interface DroppedTransactionsOptions {
  /** The result of one call, as JSON value, from a node; rejects if there is none. */
  readonly ask: (method: string, params: readonly unknown[]) => Promise<unknown>;
  /** So many pre-confirmed transactions are not in the sealed block; `removed` takes their logs back. */
  readonly onVanished: (count: number, removed: readonly Body[]) => void;
  /** A sealed block does not begin with the transactions that were pending in it. */
  readonly onDifference: (passed: Passed) => void;
}

const MAX_SUSPECTS = 50_000;

const hashesOf = (block: unknown): readonly Hash[] | undefined => {
  if (typeof block !== "object" || block === null || !("transactions" in block)) return undefined;
  const { transactions } = block;
  return Array.isArray(transactions) ? transactions.filter(isHash) : undefined;
};

/** Finds out which pre-confirmed transactions were not sealed. */
export const createDroppedTransactions = ({ ask, onVanished, onDifference }: DroppedTransactionsOptions) => {
  /** Announced, then replaced, by the number of the block that should have held them: they may still be sealed. */
  const replaced = new Map<Hash, bigint>();

  const judge = async (number: bigint, sealedHash: Hash, passed: Passed | undefined): Promise<void> => {
    const suspects = [...replaced].filter(([, of]) => of <= number).map(([hash]) => hash);
    const hashes = hashesOf(await ask("eth_getBlockByHash", [sealedHash, false]));
    if (!hashes) return;
    for (const hash of suspects) replaced.delete(hash);
    const sealed = new Set(hashes);
    const known = passed?.block.parts.flatMap(({ transactions }) => transactions) ?? [];
    // Sealed before the last messages came: what was known of it is its beginning, and right as far as it goes.
    if (passed && known.some(({ hash }, position) => hashes[position] !== hash)) onDifference(passed);
    const lost = known.filter(({ hash }) => !sealed.has(hash));
    const count = lost.length + suspects.filter((hash) => !sealed.has(hash)).length;
    if (count === 0) return;
    const removed = passed && lost.length > 0 ? removedLogs(showBlock(passed.block), lost) : [];
    onVanished(count, removed);
  };

  return {
    /** Messages that were announced and then replaced. */
    suspect: (number: bigint, parts: readonly FlashblockPart[]): void => {
      for (const { hash } of parts.flatMap(({ transactions }) => transactions)) {
        if (replaced.size < MAX_SUSPECTS) replaced.set(hash, number);
      }
    },
    /** Transactions that are pending again, or still. */
    clear: (parts: readonly FlashblockPart[]): void => {
      if (replaced.size === 0) return;
      for (const { hash } of parts.flatMap(({ transactions }) => transactions)) replaced.delete(hash);
    },
    /** The head has passed these blocks. Asks a node only where something may have vanished. */
    settle: async (heads: Heads, passed: readonly Passed[]): Promise<void> => {
      const differing = passed.filter(({ differences }) => differences.includes("transactions"));
      const numbers = new Set(differing.map(({ block }) => block.environment.number));
      for (const number of replaced.values()) if (number <= heads.latest.number) numbers.add(number);
      for (const number of numbers) {
        const sealedHash = heads.at(number)?.hash;
        const of = differing.find(({ block }) => block.environment.number === number);
        if (sealedHash) await judge(number, sealedHash, of);
      }
    },
  };
};
