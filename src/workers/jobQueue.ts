import type { Transferable } from "node:worker_threads";
import { WorkerPoolError } from "./workerPoolError.ts";

/** One job of a WorkerPool. */
export interface PoolJob {
  /** Plain data for the thread. */
  readonly input: unknown;
  /** Memory of `input` that is moved to the thread instead of copied. */
  readonly transfer?: readonly Transferable[];
  /** An idle thread whose last job had the same affinity is preferred. `undefined`: the thread keeps its affinity. */
  readonly affinity: string | undefined;
  /** Returns the response to a request of the job. If it rejects, the job rejects with the same error. */
  readonly onRequest: (request: unknown) => Promise<unknown>;
  /** Limits the wait, and then the run. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
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
  const timer = setTimeout(onTimeout, timeoutMs);
  const abort = (): void => onAbort(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  return () => {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
  };
};

/** The jobs that wait for a thread, oldest first. A job waits no longer than it may run, and not after its caller has left. */
export class JobQueue {
  readonly #waiting: { readonly job: QueuedJob; readonly endWatch: () => void }[] = [];

  get size(): number {
    return this.#waiting.length;
  }

  add(job: QueuedJob): void {
    const remove = (error: unknown): void => {
      entry.endWatch();
      this.#waiting.splice(this.#waiting.indexOf(entry), 1);
      job.reject(error);
    };
    const entry = { job, endWatch: watchJob(job, () => remove(new WorkerPoolError("queueTimeout")), remove) };
    this.#waiting.push(entry);
  }

  take(): QueuedJob | undefined {
    const entry = this.#waiting.shift();
    entry?.endWatch();
    return entry?.job;
  }

  rejectAll(error: Error): void {
    for (const { job, endWatch } of this.#waiting.splice(0)) {
      endWatch();
      job.reject(error);
    }
  }
}
