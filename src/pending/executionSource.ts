import type { CallScope } from "../core/context.ts";
import type { BlockId } from "../core/heads.ts";
import type { BlockContent } from "../state/sources/blockContent.ts";
import { packChanges } from "../state/sources/executedWrites.ts";
import { type BlockContentOptions, readBlockContent, withinScope } from "../state/sources/readBlockContent.ts";
import { scopeWithin } from "../state/sources/sourceNodes.ts";
import type { WriteSet, WriteSetFailure, WriteSetSource } from "../state/writeSet.ts";
import { type Execution, type Executor, type FlashblockJob, writeSetFailureOf } from "./execution.ts";

export interface ExecutionSourceOptions extends BlockContentOptions {
  readonly executor: Executor;
  /** Whether the executor makes every write of the block: those of OP stacks, whose rules are known. */
  readonly isExecutable: (block: BlockId) => boolean;
  readonly blockTimeMs: () => number;
  readonly unitsOf: (method: string) => number;
}

/** The estimated number of values that the execution of a block reads from nodes. */
const VALUES_PER_BLOCK = 20;

const jobOf = (id: number, { environment, transactions, ...expected }: BlockContent): FlashblockJob => ({
  id,
  before: undefined,
  environment,
  index: 0,
  transactions,
  accessList: [],
  hasPostExec: false,
  expected,
});

/**
 * Executes sealed blocks, one after another, on state from nodes. Gas, bloom and receipts root are checked against the header.
 * They do not prove storage.
 */
export class ExecutionSource implements WriteSetSource {
  readonly kind = "execution";
  readonly #options: ExecutionSourceOptions;
  #turn: Promise<unknown> = Promise.resolve();
  /** The newest block that was executed, with the id of its job. Its values need not be read again. */
  #executed: { readonly block: BlockId; readonly id: number } | undefined;
  #lastId = 0;

  constructor(options: ExecutionSourceOptions) {
    this.#options = options;
  }

  get unitsPerBlock(): number {
    const { unitsOf } = this.#options;
    return unitsOf("eth_getBlockByHash") + VALUES_PER_BLOCK * unitsOf("eth_getStorageAt");
  }

  read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    const outcome = this.#turn.then(() => this.#read(block, signal)).catch(() => "error" as const);
    this.#turn = outcome;
    return outcome;
  }

  async #read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    const { isExecutable, blockTimeMs, readBlock, thread } = this.#options;
    if (!isExecutable(block)) {
      return "unsupported";
    }
    const scope = scopeWithin(blockTimeMs(), signal);
    const content = await readBlockContent({ readBlock, thread }, block, scope);
    if (typeof content === "string") {
      return content;
    }
    const execution = await this.#execute(block, content, scope);
    if (execution === "late") {
      return "late";
    }
    const { outcome, unverified } = execution;
    if (outcome === undefined) {
      return writeSetFailureOf(unverified);
    }
    this.#executed = { block, id: this.#lastId };
    return { block, packed: packChanges([outcome.changes]) };
  }

  #execute(block: BlockId, content: BlockContent, scope: CallScope): Promise<Execution | "late"> {
    const { executor } = this.#options;
    const parent = { number: block.number - 1n, hash: content.environment.parentHash };
    executor.rebase(parent, this.#executed?.block.hash === parent.hash ? this.#executed.id : undefined);
    this.#executed = undefined;
    return withinScope(executor.execute(jobOf(++this.#lastId, content)), scope);
  }
}
