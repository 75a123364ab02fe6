import { type ResourceLimits, type Transferable, Worker } from "node:worker_threads";
import { endWorker, loadedWorker } from "./endWorker.ts";
import { LOADED, type ThreadData } from "./startTask.ts";

/** The file that a thread loads, and the name of the task that it runs there. */
export interface WorkerEntry {
  readonly url: URL;
  readonly task: string;
}

export interface WorkerThreadOptions<From> {
  readonly entry: WorkerEntry;
  /** Plain data for the task. */
  readonly data?: unknown;
  readonly limits: ResourceLimits;
  readonly onMessage: (message: From) => void;
  /** Called once, when the task is loaded. */
  readonly onLoaded?: () => void;
  /** Called once if the thread ends by itself. It is not called after `end`. */
  readonly onLost: (error: Error) => void;
}

/** One worker thread. It does not prevent the process from exiting. */
export class WorkerThread<To, From> {
  readonly #worker: Worker;
  readonly #loaded: Promise<void>;
  #hasEnded = false;

  constructor({ entry, data, limits, onMessage, onLoaded, onLost }: WorkerThreadOptions<From>) {
    const workerData: ThreadData = { task: entry.task, data };
    this.#worker = new Worker(entry.url, { workerData, resourceLimits: limits });
    this.#loaded = loadedWorker(this.#worker);
    this.#worker.on("message", (message: From | typeof LOADED) => {
      if (this.#hasEnded) {
        return;
      }
      if (message === LOADED) {
        onLoaded?.();
      } else {
        onMessage(message as From);
      }
    });
    const lose = (error: unknown): void => {
      if (this.#hasEnded) {
        return;
      }
      this.#hasEnded = true;
      onLost(error instanceof Error ? error : new Error(String(error)));
    };
    this.#worker.on("error", lose);
    this.#worker.on("exit", () => lose(new Error("a worker thread ended")));
    this.#worker.unref();
  }

  post(message: To, transfer?: readonly Transferable[]): void {
    this.#worker.postMessage(message, transfer);
  }

  /** Ends the thread, also during a job. Its messages are ignored from now on. Idempotent. */
  async end(): Promise<void> {
    this.#hasEnded = true;
    await endWorker(this.#worker, this.#loaded);
  }
}
