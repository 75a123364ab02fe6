import type { PoolLane } from "../threads/poolLane.ts";
import { WorkerPool, type WorkerPoolOptions } from "../threads/workerPool.ts";
import type { EvmTaskData } from "./runMessages.ts";

const MAX_HEAP_MIB = 512;

export type EvmThreadsOptions = Pick<WorkerPoolOptions, "entry" | "onThreads" | "onFailure">;

export interface EvmLaneOptions extends EvmTaskData {
  /** The most runs of this lane at once. The pool has at least as many threads. */
  readonly size: number;
  readonly maxWaiting: number;
  /** The threads of this lane start at once, and take only its runs. Default: no. */
  readonly isReserved?: boolean | undefined;
}

/** The threads that execute EVM code for all chains. Each chain has a lane, and lanes take turns. A lane can reserve threads for itself. */
export class EvmThreads {
  readonly #options: EvmThreadsOptions;
  /** Of the lanes that reserve none. */
  #common: WorkerPool | undefined;
  readonly #reserved = new Map<PoolLane, WorkerPool>();
  #threads = 0;
  #isClosed = false;

  constructor(options: EvmThreadsOptions) {
    this.#options = options;
  }

  /** Creates the lane of one chain. The engine and the module of the first lane are loaded when a thread starts. */
  lane({ isReserved = false, ...options }: EvmLaneOptions): PoolLane {
    const { size, maxWaiting } = options;
    if (isReserved) {
      const pool = this.#createPool(options);
      const lane = pool.lane({ maxWaiting });
      this.#reserved.set(lane, pool);
      pool.start();
      return lane;
    }
    this.#common ??= this.#createPool(options);
    this.#common.grow(size);
    return this.#common.lane({ maxWaiting, maxRunning: size });
  }

  /** Rejects the waiting runs of a lane. The threads that it has reserved end. */
  async closeLane(lane: PoolLane): Promise<void> {
    const reserved = this.#reserved.get(lane);
    if (reserved === undefined) {
      this.#common?.closeLane(lane);
      return;
    }
    await reserved.close();
    this.#reserved.delete(lane);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([this.#common, ...this.#reserved.values()].map((pool) => pool?.close()));
  }

  #createPool({ engine, module, size, maxWaiting }: EvmLaneOptions): WorkerPool {
    const { entry, onFailure, onThreads } = this.#options;
    let own = 0;
    const pool = new WorkerPool({
      ...{ entry, onFailure, data: { engine, module }, size, maxWaiting },
      limits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
      onThreads: (threads) => {
        this.#threads += threads - own;
        own = threads;
        onThreads?.(this.#threads);
      },
    });
    if (this.#isClosed) {
      void pool.close();
    }
    return pool;
  }
}
