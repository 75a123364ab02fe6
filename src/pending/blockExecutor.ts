import type { BlockId } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { BlockContent } from "../state/sources/blockContent.ts";
import type { BlockChanges, ExecutedBlock } from "../state/sources/executedSource.ts";
import type { Executor } from "./execution.ts";
import type { ReconcileOptions } from "./reconcile.ts";
import { executeAfter } from "./sealBlocks.ts";

export interface BlockExecutorOptions extends ReconcileOptions {
  readonly executor: Executor;
  /** Whether the executor makes every write of the block: those of OP stacks, whose rules are known. */
  readonly isExecutable: (block: BlockId) => boolean;
}

/** Executes sealed blocks without a feed, each on the state of its parent. The caller waits for one before it executes the next. */
export class BlockExecutor {
  readonly #options: BlockExecutorOptions;
  /** The newest block that was executed, with the id of its job. Its values need not be read again. */
  #executed: { readonly hash: Hash; readonly id: number } | undefined;
  #lastId = 0;

  constructor(options: BlockExecutorOptions) {
    this.#options = options;
  }

  readonly find = (block: BlockId): ExecutedBlock | "unsupported" =>
    this.#options.isExecutable(block)
      ? { block, changes: (content) => this.#execute(block.hash, content) }
      : "unsupported";

  async #execute(hash: Hash, content: BlockContent): Promise<BlockChanges> {
    const { executor, skipsReceiptsRoot } = this.#options;
    const { number, parentHash } = content.environment;
    const through = this.#executed?.hash === parentHash ? this.#executed.id : undefined;
    executor.rebase({ number: number - 1n, hash: parentHash }, through);
    this.#executed = undefined;
    const id = ++this.#lastId;
    const changes = await executeAfter([], content, {
      skipsReceiptsRoot,
      execute: (job) => executor.execute({ ...job, id }),
    });
    if (typeof changes !== "string" && id === this.#lastId) {
      this.#executed = { hash, id };
    }
    return changes;
  }
}
