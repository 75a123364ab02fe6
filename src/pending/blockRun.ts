import type { StateReader } from "../core/stateReader.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { Engine } from "../evm/engine.ts";
import type { ExecutionState } from "../evm/executionState.ts";
import type { SteppedRun, Steps } from "../evm/reads/steppedRun.ts";
import { startCalls } from "../evm/systemCalls.ts";
import { blockOf } from "./blockState.ts";
import { type Executed, executeTransaction, type Prepared } from "./executeTransactions.ts";
import type { FlashblockJob } from "./execution.ts";

export interface BlockRunOptions {
  readonly job: FlashblockJob;
  readonly engine: Engine;
  readonly ancestors: ReadonlyMap<bigint, Hash>;
  readonly transactions: readonly Prepared[];
  /** Gas that the block used before these transactions. */
  readonly gasUsed: bigint;
}

/** The steps of one message: the calls at its block's start, and its transactions. Throws TransactionError. */
export class BlockRun implements SteppedRun<readonly Executed[]> {
  /** The transactions that were executed. */
  readonly executed: Executed[] = [];
  readonly #options: BlockRunOptions;

  constructor(options: BlockRunOptions) {
    this.#options = options;
  }

  createState(reader: StateReader): ExecutionState {
    return this.#options.engine.createState(reader);
  }

  async execute({ step, reader }: Steps): Promise<readonly Executed[]> {
    const { job, engine, ancestors, transactions, gasUsed } = this.#options;
    const block = blockOf(job.environment, ancestors, reader);
    for (const call of job.index > 0 ? [] : startCalls(engine, job.environment)) {
      await step((state) => engine.systemCall({ state, block }, ...call));
    }
    for (const transaction of transactions) {
      const before = this.executed.at(-1)?.receipt.cumulativeGasUsed ?? gasUsed;
      this.executed.push(await step((state) => executeTransaction({ engine, state, block }, transaction, before)));
    }
    return this.executed;
  }
}
