import type { BlockId, Heads } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { ExecutedBlock } from "../state/sources/executedSource.ts";
import { orLate } from "../state/sources/sourceNodes.ts";
import type { WriteSetFailure } from "../state/writeSet.ts";

/** Older blocks are discarded. A follower reads a block when it is the head, or while a late execution runs. */
const MAX_BLOCKS = 32;
/** The longest wait for the comparison of a head with the pending blocks. */
const MAX_COMPARISON_MS = 100;

/** The sealed blocks that are executed from the feed. */
export class ExecutedBlocks {
  readonly #blocks = new Map<Hash, ExecutedBlock>();
  /** The newest heads that were compared with the pending blocks. */
  #heads: Heads | undefined;
  #compared = Promise.withResolvers<void>();

  /** Records a comparison of heads with the pending blocks. */
  record(heads: Heads, executed: readonly ExecutedBlock[]): void {
    for (const each of executed) {
      this.#blocks.set(each.block.hash, each);
    }
    for (const hash of [...this.#blocks.keys()].slice(0, -MAX_BLOCKS)) {
      this.#blocks.delete(hash);
    }
    this.#heads = heads;
    this.#compared.resolve();
    this.#compared = Promise.withResolvers();
  }

  /** Returns what is executed of a block. Waits until it is compared. */
  async find(block: BlockId, signal: AbortSignal): Promise<ExecutedBlock | WriteSetFailure> {
    const scope = { deadlineMs: performance.now() + MAX_COMPARISON_MS, signal };
    while (!this.#isCompared(block) && (await orLate(this.#compared.promise, scope)) !== "late") {
      // Other heads were compared.
    }
    return this.#blocks.get(block.hash) ?? (this.#isCompared(block) ? "incomplete" : "late");
  }

  #isCompared({ number, hash }: BlockId): boolean {
    return this.#heads?.at(number)?.hash === hash;
  }
}
