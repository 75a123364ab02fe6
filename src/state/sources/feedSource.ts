import type { BlockId, Heads } from "../../core/heads.ts";
import type { StateChanges } from "../../core/stateReader.ts";
import type { Hash } from "../../ethereum/hex.ts";
import type { Awaitable } from "../../jsonrpc/call.ts";
import type { WriteSet, WriteSetFailure, WriteSetSource } from "../writeSet.ts";
import type { BlockContent } from "./blockContent.ts";
import { packChanges } from "./executedWrites.ts";
import { withinScope } from "./readBlockContent.ts";

/** A sealed block that equals a verified execution, system writes included. */
export interface SealedExecution {
  readonly block: BlockId;
  /** The writes of the block's parts, oldest first. A promise if the execution still runs. Undefined: it was wrong. */
  readonly changes: Awaitable<readonly StateChanges[] | undefined>;
}

/** A sealed block whose first transactions were executed. */
export interface PartialExecution {
  readonly block: BlockId;
  /** Executes the other transactions. Returns the writes of the whole block, oldest first, or why there are none. May reject. */
  complete(content: BlockContent): Promise<readonly StateChanges[] | WriteSetFailure>;
}

/** Executions of older blocks are discarded. A follower reads a block when it is the head, or while a late execution runs. */
const MAX_BLOCKS = 32;
/** The longest wait for the comparison of a head with the pending blocks. */
const MAX_COMPARISON_MS = 100;
/** The longest wait for an execution that missed its deadline. The blocks after it wait too, and their reads are the nodes'. */
const MAX_EXECUTION_MS = 2_000;

/** Write sets of blocks that were executed from the feed before they were sealed. */
export class FeedSource implements WriteSetSource {
  readonly kind = "feed";
  readonly unitsPerBlock = 0;
  readonly #executions = new Map<Hash, SealedExecution>();
  #partial: PartialExecution | undefined;
  /** The newest heads that were compared with the pending blocks. */
  #heads: Heads | undefined;
  #compared = Promise.withResolvers<void>();

  /** Records a comparison of heads with the pending blocks. `executed`: the blocks that equal their execution. */
  readonly record = (heads: Heads, executed: readonly SealedExecution[], partial?: PartialExecution): void => {
    this.#partial = partial;
    for (const execution of executed) {
      this.#executions.set(execution.block.hash, execution);
    }
    for (const hash of [...this.#executions.keys()].slice(0, -MAX_BLOCKS)) {
      this.#executions.delete(hash);
    }
    this.#heads = heads;
    this.#compared.resolve();
    this.#compared = Promise.withResolvers();
  };

  async read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    const scope = { deadlineMs: performance.now() + MAX_COMPARISON_MS, signal };
    while (!this.#isCompared(block) && (await withinScope(this.#compared.promise, scope)) !== "late") {
      // Other heads were compared.
    }
    const execution = this.#executions.get(block.hash);
    if (execution === undefined) {
      return this.#isCompared(block) ? "incomplete" : "late";
    }
    const deadlineMs = performance.now() + MAX_EXECUTION_MS;
    const changes =
      execution.changes instanceof Promise
        ? await withinScope(execution.changes, { deadlineMs, signal })
        : execution.changes;
    if (changes === "late") {
      return "late";
    }
    return changes === undefined ? "incomplete" : { block, packed: packChanges(changes) };
  }

  /** Returns the execution of the first transactions of the newest block, if it has others at its end. */
  partial({ hash }: BlockId): PartialExecution | undefined {
    return this.#partial?.block.hash === hash ? this.#partial : undefined;
  }

  #isCompared({ number, hash }: BlockId): boolean {
    return this.#heads?.at(number)?.hash === hash;
  }
}
