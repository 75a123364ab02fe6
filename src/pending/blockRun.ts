import type { StateChanges, StateKeys } from "../core/stateReader.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { BlockEnvironment, Engine } from "../evm/engine.ts";
import type { ExecutionState } from "../evm/executionState.ts";
import { IncompleteState } from "../evm/reads/incompleteState.ts";
import type { KnownState } from "../evm/reads/knownState.ts";
import { createStrictState } from "../evm/reads/missingState.ts";
import { type SystemCall, startCalls } from "../evm/systemCalls.ts";
import { blockOf, layered } from "./blockState.ts";
import { type Executed, executeTransaction, type Prepared } from "./executeTransactions.ts";
import type { FlashblockJob } from "./execution.ts";
import type { Layer } from "./stateLayers.ts";

export interface BlockRunOptions {
  readonly job: FlashblockJob;
  readonly engine: Engine;
  readonly known: KnownState;
  /** The writes above the cached state, newest first. */
  readonly layers: readonly Layer[];
  readonly ancestors: ReadonlyMap<bigint, Hash>;
  readonly transactions: readonly Prepared[];
  /** Gas that the block used before these transactions. */
  readonly gasUsed: bigint;
}

/** One turn of the engine. */
export interface Turn {
  queue<T>(job: () => Promise<T>): Promise<T>;
  /** The most calls and transactions of one turn. */
  readonly maxSteps: number;
}

/** Executes one message's transactions in order. After a missing value it continues from there, and executes each transaction once. */
export class BlockRun {
  readonly block: BlockEnvironment;
  readonly executed: Executed[] = [];
  readonly #options: BlockRunOptions;
  readonly #reader: IncompleteState;
  readonly #state: ExecutionState;
  /** The calls at the block's start that have not run. */
  readonly #startCalls: SystemCall[];

  constructor(options: BlockRunOptions) {
    const { job, engine, known, layers, ancestors } = options;
    this.#options = options;
    this.#reader = new IncompleteState(createStrictState, (missing) => layered(known.reader(missing), layers));
    this.#state = engine.createState(this.#reader);
    this.#startCalls = job.index > 0 ? [] : [...startCalls(engine, job.environment)];
    this.block = blockOf(job.environment, ancestors, this.#reader);
  }

  /** Whether all transactions were executed. */
  get #isDone(): boolean {
    return this.#startCalls.length === 0 && this.executed.length === this.#options.transactions.length;
  }

  /**
   * Executes all transactions, in turns of `turn`. `fetch` gets the keys of a missing value, and makes it known.
   * Throws TransactionError.
   */
  async complete(turn: Turn, fetch: (missing: StateKeys) => Promise<void>): Promise<void> {
    while (!this.#isDone) {
      await this.#reader.complete(() => turn.queue(() => this.#advance(turn.maxSteps)), fetch);
    }
  }

  async #advance(maxSteps: number): Promise<void> {
    for (let steps = 0; steps < maxSteps && !this.#isDone; steps++) {
      await this.#step();
    }
  }

  async #step(): Promise<void> {
    const { engine, transactions, gasUsed } = this.#options;
    const context = { engine, state: this.#state, block: this.block };
    const [start] = this.#startCalls;
    if (start) {
      await engine.systemCall(context, ...start);
      this.#startCalls.shift();
      return;
    }
    const next = transactions[this.executed.length];
    if (!next) {
      return;
    }
    const before = this.executed.at(-1)?.receipt.cumulativeGasUsed ?? gasUsed;
    this.executed.push(await executeTransaction(context, next, before));
  }

  /** Returns the writes of the transactions that were executed. */
  changes(): StateChanges {
    return this.#state.changes();
  }
}
