import { JobQueue, type PoolJob, type QueuedJob } from "./jobQueue.ts";
import { WorkerPoolError } from "./workerPoolError.ts";

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
      job.signal.throwIfAborted();
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
    const job = this.ready > 0 ? this.#queue.take() : undefined;
    if (job === undefined) {
      return undefined;
    }
    this.#running++;
    return {
      ...job,
      resolve: (output) => {
        job.resolve(output);
        this.#end();
      },
      reject: (error) => {
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
