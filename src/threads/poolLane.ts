import { FairQueue, INTERNAL_OWNER, type QueueOwner } from "../limits/fairQueue.ts";

/** Why a pool did not complete a job. */
export type WorkerPoolFailure =
  /** Too many jobs wait. */
  | "queueFull"
  /** The job waited for its whole time limit. */
  | "queueTimeout"
  /** The job ran for its whole time limit. */
  | "deadline"
  /** The thread ended, or the job threw. `cause` has the error. */
  | "failed"
  | "closed";

export class WorkerPoolError extends Error {
  override readonly name = "WorkerPoolError";
  readonly reason: WorkerPoolFailure;

  constructor(reason: WorkerPoolFailure, options?: ErrorOptions) {
    super(`a worker pool did not complete a job: ${reason}`, options);
    this.reason = reason;
  }
}

/** One job of a WorkerPool. */
export interface PoolJob {
  /** Plain data for the thread. Members that are bytes are copied when a thread takes the job. */
  readonly input: unknown;
  /** An idle thread whose last job had the same affinity is preferred. `undefined`: the thread keeps its affinity. */
  readonly affinity?: string | undefined;
  /** Returns the value that the job asks for. If it rejects, the job rejects with the same error. */
  readonly onRequest?: ((request: unknown) => Promise<unknown>) | undefined;
  /** Called when a thread takes the job, and returns what is called at its end. If it throws, the job rejects with the same error. */
  readonly begin?: (() => () => void) | undefined;
  /** Limits the run. Default: no limit. */
  readonly timeoutMs?: number | undefined;
  /** Limits the wait for a thread. Default: `timeoutMs`. */
  readonly maxWaitMs?: number;
  /** Clients take turns. Default: no client. */
  readonly owner?: QueueOwner | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A job and the promise of its caller. */
export interface QueuedJob extends PoolJob {
  readonly resolve: (output: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Calls back after the job's time limit or when its signal aborts. Returns the function that ends the watch. */
export const watchJob = (
  { timeoutMs, signal }: Pick<PoolJob, "timeoutMs" | "signal">,
  onTimeout: () => void,
  onAbort: (reason: unknown) => void,
): (() => void) => {
  const timer = timeoutMs === undefined ? undefined : setTimeout(onTimeout, timeoutMs);
  const abort = (): void => onAbort(signal?.reason);
  signal?.addEventListener("abort", abort, { once: true });
  return () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  };
};

interface WaitingJob {
  readonly job: QueuedJob;
  readonly owner: QueueOwner;
  readonly endWatch: () => void;
}

export interface LaneOptions {
  readonly maxWaiting: number;
  /** The most jobs of this lane that run at once. Default: no limit. */
  readonly maxRunning?: number;
}

/**
 * The jobs of one user of a WorkerPool, such as a chain. Lanes take turns, and inside a lane clients take turns.
 * A job waits for a limited time, and not after its caller has disconnected.
 */
export class PoolLane {
  readonly #waiting = new FairQueue<WaitingJob>();
  readonly #maxWaiting: number;
  readonly #maxRunning: number;
  /** A job waits, or a place is free. */
  readonly #onChange: () => void;
  #running = 0;
  #isClosed = false;

  constructor({ maxWaiting, maxRunning = Number.POSITIVE_INFINITY }: LaneOptions, onChange: () => void) {
    this.#maxWaiting = maxWaiting;
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
      this.#add({ ...job, resolve, reject });
      this.#onChange();
    });
  }

  /** Number of jobs that run. */
  get running(): number {
    return this.#running;
  }

  /** Number of jobs that may start now. */
  get ready(): number {
    return Math.min(this.#waiting.size, Math.max(0, this.#maxRunning - this.#running));
  }

  /** Takes the job of the next turn. The pool must run it. */
  take(): QueuedJob | undefined {
    while (this.ready > 0) {
      const job = this.#takeWaiting();
      const started = job && this.#start(job);
      if (started !== undefined) {
        return started;
      }
    }
    return undefined;
  }

  /** Rejects the waiting jobs. Jobs that run may finish. */
  close(): void {
    this.#isClosed = true;
    for (let job = this.#takeWaiting(); job !== undefined; job = this.#takeWaiting()) {
      job.reject(new WorkerPoolError("closed"));
    }
  }

  /** Adds a job. If the queue is full, it rejects the newest job of the client with the most jobs: that may be this one. */
  #add(job: QueuedJob): void {
    const { owner = INTERNAL_OWNER, timeoutMs, maxWaitMs = timeoutMs, signal } = job;
    if (this.#waiting.size >= this.#maxWaiting) {
      const evicted = this.#waiting.evictFor(owner.clientId);
      evicted?.endWatch();
      (evicted?.job ?? job).reject(new WorkerPoolError("queueFull"));
      if (evicted === undefined) {
        return;
      }
    }
    const remove = (error: unknown): void => {
      entry.endWatch();
      this.#waiting.remove(owner, entry);
      job.reject(error);
    };
    const onTimeout = (): void => remove(new WorkerPoolError("queueTimeout"));
    const endWatch = watchJob({ timeoutMs: maxWaitMs, signal }, onTimeout, remove);
    const entry: WaitingJob = { job, owner, endWatch };
    this.#waiting.add(owner, entry);
  }

  #takeWaiting(): QueuedJob | undefined {
    const entry = this.#waiting.take();
    entry?.endWatch();
    return entry?.job;
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

  #end(): void {
    const wasFull = this.#running === this.#maxRunning;
    this.#running--;
    if (wasFull) {
      // The thread that ran the job is not free yet.
      queueMicrotask(this.#onChange);
    }
  }
}
