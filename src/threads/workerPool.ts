import type { ResourceLimits } from "node:worker_threads";
import { type LaneOptions, type PoolJob, PoolLane, type QueuedJob, WorkerPoolError } from "./poolLane.ts";
import { WorkerSlot, type WorkerSlotOptions } from "./workerSlot.ts";
import type { WorkerEntry } from "./workerThread.ts";

export interface WorkerPoolOptions {
  /** A task that offers JobFunctions. */
  readonly entry: WorkerEntry;
  /** Plain data for the task of each thread. */
  readonly data?: unknown;
  /** The largest number of threads. */
  readonly size: number;
  /** Of the jobs that are run without a lane. */
  readonly maxWaiting: number;
  /** Of each thread. */
  readonly limits: ResourceLimits;
  /** Called with the number of threads when it changes. */
  readonly onThreads?: ((threads: number) => void) | undefined;
  /** Called when a thread ended by itself, or a job threw. */
  readonly onFailure?: ((error: Error) => void) | undefined;
}

/**
 * Runs jobs in worker threads, one job per thread at a time. A thread starts when a job waits and no other thread is idle.
 * A job that reaches its time limit, or whose caller disconnects, is interrupted. A thread that ignores that is replaced.
 */
export class WorkerPool {
  readonly #slotOptions: WorkerSlotOptions;
  readonly #slots: WorkerSlot[] = [];
  /** In the order of turns: the lane that was served last is at the end. */
  readonly #lanes: PoolLane[] = [];
  readonly #ownLane: PoolLane;
  #isClosed = false;

  constructor({ entry, data, size, maxWaiting, limits, onThreads, onFailure }: WorkerPoolOptions) {
    this.#slotOptions = {
      entry,
      data,
      limits,
      onFree: () => this.#assign(),
      onThread: () => onThreads?.(this.#slots.filter(({ hasThread }) => hasThread).length),
      onFailure: (error: Error) => onFailure?.(error),
    };
    this.grow(size);
    this.#ownLane = this.lane({ maxWaiting });
  }

  /** Returns the job's output. Rejects with WorkerPoolError, with the signal's reason, or with the error of `job.onRequest`. */
  run(job: PoolJob): Promise<unknown> {
    return this.#ownLane.run(job);
  }

  /** Creates the lane of one user. Lanes take turns for a thread. */
  lane(options: LaneOptions): PoolLane {
    const lane = new PoolLane(options, () => this.#assign());
    this.#lanes.push(lane);
    if (this.#isClosed) {
      lane.close();
    }
    return lane;
  }

  /** Rejects the waiting jobs of a lane. */
  closeLane(lane: PoolLane): void {
    lane.close();
    const at = this.#lanes.indexOf(lane);
    if (at !== -1) {
      this.#lanes.splice(at, 1);
    }
  }

  /** Allows up to `size` threads, if that is more than now. */
  grow(size: number): void {
    while (this.#slots.length < size) {
      this.#slots.push(new WorkerSlot(this.#slotOptions));
    }
  }

  /** Starts all threads that are missing. */
  start(): void {
    if (this.#isClosed) {
      return;
    }
    for (const slot of this.#slots.filter(({ isEmpty }) => isEmpty)) {
      slot.start();
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const lane of this.#lanes) {
      lane.close();
    }
    const error = new WorkerPoolError("closed");
    await Promise.all(this.#slots.map((slot) => slot.close(error)));
  }

  #assign(): void {
    if (this.#isClosed) {
      return;
    }
    for (let idle = this.#idleSlots(); idle.length > 0; idle = this.#idleSlots()) {
      const job = this.#takeNext();
      if (job === undefined) {
        return;
      }
      (idle.find(({ affinity }) => affinity === job.affinity) ?? idle[0])?.run(job);
    }
    this.#startMissing();
  }

  #idleSlots(): readonly WorkerSlot[] {
    return this.#slots.filter(({ isIdle }) => isIdle);
  }

  #takeNext(): QueuedJob | undefined {
    const at = this.#lanes.findIndex(({ ready }) => ready > 0);
    const [lane] = at === -1 ? [] : this.#lanes.splice(at, 1);
    if (lane === undefined) {
      return undefined;
    }
    this.#lanes.push(lane);
    return lane.take();
  }

  /** Starts a thread for each waiting job that no starting thread will take. */
  #startMissing(): void {
    const starting = this.#slots.filter(({ isStarting }) => isStarting).length;
    const ready = this.#lanes.reduce((sum, lane) => sum + lane.ready, 0);
    const missing = Math.max(0, ready - starting);
    for (const slot of this.#slots.filter(({ isEmpty }) => isEmpty).slice(0, missing)) {
      slot.start();
    }
  }
}
