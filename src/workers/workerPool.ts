import type { ResourceLimits } from "node:worker_threads";
import { JobQueue, type PoolJob } from "./jobQueue.ts";
import { WorkerPoolError } from "./workerPoolError.ts";
import { WorkerSlot } from "./workerSlot.ts";
import type { WorkerEntry } from "./workerThread.ts";

export interface WorkerPoolOptions {
  /** A task that calls `serveJobs`. */
  readonly entry: WorkerEntry;
  /** Plain data for the task of each thread. */
  readonly data?: unknown;
  /** The largest number of threads. */
  readonly size: number;
  readonly maxWaiting: number;
  /** Of each thread. */
  readonly limits: ResourceLimits;
  /** Called with the number of threads when it changes. */
  readonly onThreads?: ((threads: number) => void) | undefined;
  /** Called when a thread ended by itself, or a job threw. */
  readonly onFailure?: ((error: Error) => void) | undefined;
  /** Called when a job reached its time limit. */
  readonly onDeadline?: (() => void) | undefined;
}

/**
 * Runs jobs in worker threads, one job per thread at a time. A thread starts when a job waits and no other thread is idle.
 * A job that reaches its time limit, or whose caller disconnects, is interrupted. A thread that does not heed that is replaced.
 */
export class WorkerPool {
  readonly #queue: JobQueue;
  readonly #slots: readonly WorkerSlot[];
  #isClosed = false;

  constructor({ entry, data, size, maxWaiting, limits, onThreads, onFailure, onDeadline }: WorkerPoolOptions) {
    this.#queue = new JobQueue(maxWaiting);
    const slotOptions = {
      entry,
      data,
      limits,
      onFree: () => this.#assign(),
      onThread: () => onThreads?.(this.#slots.filter(({ hasThread }) => hasThread).length),
      onFailure: (error: Error) => onFailure?.(error),
      onDeadline: () => onDeadline?.(),
    };
    this.#slots = Array.from({ length: size }, () => new WorkerSlot(slotOptions));
  }

  /** Returns the job's output. Rejects with WorkerPoolError, with the signal's reason, or with the error of `job.onRequest`. */
  run(job: PoolJob): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) {
        throw new WorkerPoolError("closed");
      }
      job.signal.throwIfAborted();
      this.#queue.add({ ...job, resolve, reject });
      this.#assign();
    });
  }

  /** Number of jobs that run. */
  get busy(): number {
    return this.#slots.filter(({ isBusy }) => isBusy).length;
  }

  /** Number of threads that would run a job at once. */
  get idle(): number {
    return this.#slots.filter(({ isIdle }) => isIdle).length;
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

  /** Number of jobs that wait for a thread. */
  get waiting(): number {
    return this.#queue.size;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const error = new WorkerPoolError("closed");
    this.#queue.rejectAll(error);
    await Promise.all(this.#slots.map((slot) => slot.close(error)));
  }

  #assign(): void {
    if (this.#isClosed) {
      return;
    }
    while (this.#queue.size > 0) {
      const idle = this.#slots.filter(({ isIdle }) => isIdle);
      const [first] = idle;
      const job = first && this.#queue.take();
      if (first === undefined || job === undefined) {
        break;
      }
      (idle.find(({ affinity }) => affinity === job.affinity) ?? first).run(job);
    }
    this.#startMissing();
  }

  /** Starts a thread for each waiting job that no starting thread will take. */
  #startMissing(): void {
    const starting = this.#slots.filter(({ isStarting }) => isStarting).length;
    const missing = Math.max(0, this.#queue.size - starting);
    for (const slot of this.#slots.filter(({ isEmpty }) => isEmpty).slice(0, missing)) {
      slot.start();
    }
  }
}
