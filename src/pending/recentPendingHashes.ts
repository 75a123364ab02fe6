import type { Hash } from "../ethereum/hex.ts";
import type { PendingBlockState, PendingChain } from "./applyMessage.ts";
import type { BlockFormatter } from "./blockFormatter.ts";
import { isMismatch } from "./execution.ts";

/** Whether the execution shows that a field of a message is wrong. The hash may be that of another block. */
const isContradicted = ({ parts }: PendingBlockState): boolean =>
  parts.some(({ unverified }) => isMismatch(unverified));

const TTL_MS = 10_000;
const MAX_BLOCKS = 1_024;

/** Pending chains by the hashes of their newest blocks that clients received recently. Each hash belongs to one prefix of a block. */
export class RecentPendingHashes {
  readonly #formatted: BlockFormatter;
  readonly #now: () => number;
  /** In order of time. */
  readonly #cached = new Map<Hash, { readonly chain: PendingChain; readonly addedAtMs: number }>();

  /** `now` returns milliseconds of a monotonic clock. */
  constructor(formatted: BlockFormatter, now: () => number) {
    this.#formatted = formatted;
    this.#now = now;
  }

  /** Adds a chain, unless the execution of its newest block contradicts that block. A node answers for that hash. */
  add(chain: PendingChain): void {
    const newest = chain.blocks.at(-1);
    if (newest === undefined || isContradicted(newest)) {
      return;
    }
    const { hash } = this.#formatted.format(newest);
    this.#cached.delete(hash);
    this.#cached.set(hash, { chain, addedAtMs: this.#now() });
    this.#evict();
  }

  find(hash: Hash): PendingChain | undefined {
    this.#evict();
    return this.#cached.get(hash)?.chain;
  }

  #evict(): void {
    for (const [hash, { addedAtMs }] of this.#cached) {
      if (this.#cached.size <= MAX_BLOCKS && this.#now() - addedAtMs <= TTL_MS) {
        return;
      }
      this.#cached.delete(hash);
    }
  }
}
