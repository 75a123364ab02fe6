import { type BlockId, type Heads, isCanonicalIn } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { BlockChanges, ExecutedBlock } from "../state/sources/feedSource.ts";
import { orLate } from "../state/sources/sourceNodes.ts";
import type { WriteSetFailure } from "../state/writeSet.ts";
import type { PendingBlockState } from "./applyMessage.ts";
import type { ExecutionPipeline } from "./executionPipeline.ts";
import type { Passed } from "./reconcile.ts";

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

  /** Records a comparison of heads with the pending blocks. Must be called before the base changes. */
  record(heads: Heads, passed: readonly Passed[], pipeline: Executions): void {
    for (const { block, sealed, isResult } of passed) {
      if (sealed && isResult) {
        const { number, hash } = sealed;
        this.#blocks.set(hash, { block: { number, hash }, changes: changesOf(block, pipeline) });
      }
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

  #isCompared(block: BlockId): boolean {
    return isCanonicalIn(this.#heads, block);
  }
}

type Executions = Pick<ExecutionPipeline, "record">;

/** Returns the changes of all parts. The execution of one may be late. */
const changesOf = async ({ parts }: PendingBlockState, pipeline: Executions): Promise<BlockChanges> => {
  const changes = parts.map((part) => part.changes ?? pipeline.record(part.message)?.untilExecuted());
  const known = (await Promise.all(changes)).flatMap((each) => each ?? []);
  return known.length === parts.length ? known : "incomplete";
};
