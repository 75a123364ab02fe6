import type { PoolLane } from "../threads/poolLane.ts";
import { WorkerPool, type WorkerPoolOptions } from "../threads/workerPool.ts";
import type { EvmTaskData } from "./runMessages.ts";

const MAX_HEAP_MIB = 512;

export type EvmThreadsOptions = Pick<WorkerPoolOptions, "entry" | "onThreads" | "onFailure">;

export interface EvmLaneOptions extends EvmTaskData {
  /** The most runs of this lane at once. The pool has at least as many threads. */
  readonly size: number;
  readonly maxWaiting: number;
}

/** The threads that execute EVM code for all chains. Each chain has a lane, and lanes take turns. */
export class EvmThreads {
  readonly #options: EvmThreadsOptions;
  #pool: WorkerPool | undefined;
  #isClosed = false;

  constructor(options: EvmThreadsOptions) {
    this.#options = options;
  }

  /** Creates the lane of one chain. The engine and the module of the first lane are loaded when a thread starts. */
  lane({ size, maxWaiting, engine, module }: EvmLaneOptions): PoolLane {
    this.#pool ??= this.#createPool({ ...this.#options, data: { engine, module }, size, maxWaiting });
    this.#pool.grow(size);
    return this.#pool.lane({ maxWaiting, maxRunning: size });
  }

  closeLane(lane: PoolLane): void {
    this.#pool?.closeLane(lane);
  }

  /** Number of threads that would run at once. */
  get idle(): number {
    return this.#pool?.idle ?? 0;
  }

  /** Starts all threads that are missing. */
  start(): void {
    this.#pool?.start();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#pool?.close();
  }

  #createPool(options: Omit<WorkerPoolOptions, "limits">): WorkerPool {
    const pool = new WorkerPool({ ...options, limits: { maxOldGenerationSizeMb: MAX_HEAP_MIB } });
    if (this.#isClosed) {
      void pool.close();
    }
    return pool;
  }
}
