import type { Hash } from "../../../src/ethereum/hex.ts";
import { ancestorAt, type SealedBlock } from "./sealedBlock.ts";

/** A block, and the time from which it was the head, or was visible in the feed. */
export interface Recorded<Block> {
  readonly atMs: number;
  readonly block: Block;
}

/** All blocks of all branches, and what was the head when. */
export class ChainRecord<Block extends SealedBlock & { readonly parent: Block | undefined }> {
  readonly chainId: number;
  protected readonly blocks = new Map<Hash, Block>();
  protected readonly heads: Recorded<Block>[] = [];
  readonly #byTransaction = new Map<Hash, Block[]>();
  readonly #listeners = new Set<(head: Block) => void>();

  constructor(chainId: number) {
    this.chainId = chainId;
  }

  get head(): Block {
    const newest = this.heads.at(-1);
    if (newest === undefined) {
      throw new Error("a chain without blocks");
    }
    return newest.block;
  }

  /** Returns the block of a number on the branch of the head. */
  at(number: number): Block | undefined {
    return this.heads.length > 0 && number >= 0 ? ancestorAt(this.head, number) : undefined;
  }

  block(hash: unknown): Block | undefined {
    return this.blocks.get(hash as Hash);
  }

  /** Returns the blocks that contain a transaction, sealed or in the feed, on all branches. */
  holding(transaction: unknown): readonly Block[] {
    return this.#byTransaction.get(transaction as Hash) ?? [];
  }

  /** Returns the heads that the chain had between two times, newest first. */
  headsBetween(fromMs: number, toMs: number): readonly Block[] {
    return between(this.heads, fromMs, toMs);
  }

  /** Calls the listener with each new head, but not with one to which the chain goes back. Returns the function that ends it. */
  onHead(listener: (head: Block) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  protected holdTransactions(block: Block): void {
    for (const hash of block.hashes) {
      this.#byTransaction.set(hash, [...this.holding(hash), block]);
    }
  }

  protected announce(head: Block): void {
    for (const listener of this.#listeners) {
      listener(head);
    }
  }
}

/** Returns what was recorded between two times, newest first. */
export const between = <Block>(recorded: readonly Recorded<Block>[], fromMs: number, toMs: number): Block[] => {
  const found: Block[] = [];
  for (let index = recorded.length - 1; index >= 0; index--) {
    const each = recorded[index];
    if (each === undefined || each.atMs > toMs) {
      continue;
    }
    found.push(each.block);
    if (each.atMs <= fromMs) {
      break;
    }
  }
  return found;
};
