import type { StateChanges, StateKeys, StateReader } from "../core/stateReader.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { BlockEnvironment, Engine } from "../evm/engine.ts";
import type { ExecutionState } from "../evm/executionState.ts";
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

/** Executes one message's transactions in order and stops if a value is missing. It continues from there, and executes each transaction once. */
export class BlockRun {
  readonly block: BlockEnvironment;
  readonly executed: Executed[] = [];
  readonly #options: BlockRunOptions;
  readonly #state: ExecutionState;
  /** The calls at the block's start that have not run. */
  readonly #startCalls: SystemCall[];
  #reader: StateReader;

  constructor(options: BlockRunOptions) {
    const { job, engine, known, layers, ancestors } = options;
    this.#options = options;
    this.#reader = layered(known.reader(createStrictState()), layers);
    const reader: StateReader = {
      account: (address) => this.#reader.account(address),
      code: (hash, address) => this.#reader.code(hash, address),
      storage: (address, slot) => this.#reader.storage(address, slot),
      blockHash: (number) => this.#reader.blockHash(number),
    };
    this.#state = engine.createState(reader);
    this.#startCalls = job.index > 0 ? [] : [...startCalls(engine, job.environment)];
    this.block = blockOf(job.environment, ancestors, reader);
  }

  /** Whether all transactions were executed. */
  get isDone(): boolean {
    return this.#startCalls.length === 0 && this.executed.length === this.#options.transactions.length;
  }

  /**
   * Executes until a value is missing and returns its key. Returns `undefined` at the end, or after that many calls and
   * transactions. Throws TransactionError.
   */
  async advance(maxSteps = Number.POSITIVE_INFINITY): Promise<StateKeys | undefined> {
    const { known, layers } = this.#options;
    const missing = createStrictState();
    this.#reader = layered(known.reader(missing), layers);
    for (let steps = 0; steps < maxSteps && !this.isDone; steps++) {
      try {
        await this.#step();
      } catch (error) {
        if (missing.count === 0) {
          throw error;
        }
        return missing.keys();
      }
    }
    return undefined;
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
