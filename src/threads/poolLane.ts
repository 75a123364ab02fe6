import { JobQueue, type PoolJob, type QueuedJob, WorkerPoolError } from "./jobQueue.ts";

export interface LaneOptions {
  readonly maxWaiting: number;
  /** The most jobs of this lane that run at once. Default: no limit. */
  readonly maxRunning?: number;
}

/** The jobs of one user of a WorkerPool, such as a chain. Lanes take turns. Inside a lane clients take turns. */
export class PoolLane {
  readonly #queue: JobQueue;
  readonly #maxRunning: number;
  /** A job waits, or a place is free. */
  readonly #onChange: () => void;
  #running = 0;
  #isClosed = false;

  constructor({ maxWaiting, maxRunning = Number.POSITIVE_INFINITY }: LaneOptions, onChange: () => void) {
    this.#queue = new JobQueue(maxWaiting);
    this.#maxRunning = maxRunning;
    this.#onChange = onChange;
  }

  /** Returns the job's output. Rejects with WorkerPoolError, with the signal's reason, or with the error of `job.onRequest`. */
  run(job: PoolJob): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) {
        throw new WorkerPoolError("closed");
      }
      job.signal?.throwIfAborted();
      this.#queue.add({ ...job, resolve, reject });
      this.#onChange();
    });
  }

  /** Number of jobs that run. */
  get running(): number {
    return this.#running;
  }

  /** Number of jobs that wait for a thread. */
  get waiting(): number {
    return this.#queue.size;
  }

  /** Number of jobs that may start now. */
  get ready(): number {
    return Math.min(this.#queue.size, Math.max(0, this.#maxRunning - this.#running));
  }

  /** Takes the job of the next turn. The pool must run it. */
  take(): QueuedJob | undefined {
    while (this.ready > 0) {
      const job = this.#queue.take();
      const started = job && this.#start(job);
      if (started !== undefined) {
        return started;
      }
    }
    return undefined;
  }

  /** Returns undefined if the job cannot begin. */
  #start(job: QueuedJob): QueuedJob | undefined {
    let end: (() => void) | undefined;
    try {
      end = job.begin?.();
    } catch (error) {
      job.reject(error);
      return undefined;
    }
    this.#running++;
    return {
      ...job,
      resolve: (output) => {
        end?.();
        job.resolve(output);
        this.#end();
      },
      reject: (error) => {
        end?.();
        job.reject(error);
        this.#end();
      },
    };
  }

  /** Rejects the waiting jobs. Jobs that run may finish. */
  close(): void {
    this.#isClosed = true;
    this.#queue.rejectAll(new WorkerPoolError("closed"));
  }

  #end(): void {
    const wasFull = this.#running === this.#maxRunning;
    this.#running--;
    if (wasFull) {
      // The thread that ran the job is not free yet.
      queueMicrotask(this.#onChange);
    }
  }
}
