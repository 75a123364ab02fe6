import { once } from "node:events";
import { type ResourceLimits, Worker } from "node:worker_threads";
import { Channel, type Protocol } from "./channel.ts";
import { LOADED, type ThreadData } from "./threadTask.ts";

/** The file that a thread loads, and the name of the task that it runs there. */
export interface WorkerEntry {
  readonly url: URL;
  readonly task: string;
}

export interface WorkerThreadOptions<Ours extends Protocol> {
  readonly entry: WorkerEntry;
  /** Plain data for the task. */
  readonly data?: unknown;
  readonly limits: ResourceLimits;
  /** The functions that the thread may call. */
  readonly functions: Partial<Ours>;
  /** Called once, when the task is loaded. */
  readonly onLoaded?: () => void;
  /** Called once if the thread ends by itself. It is not called after `end`. */
  readonly onLost: (error: Error) => void;
}

/** One worker thread, and the channel to it. It does not prevent the process from exiting. */
export class WorkerThread<Theirs extends Protocol, Ours extends Protocol> {
  readonly channel: Channel<Theirs, Ours>;
  readonly #worker: Worker;
  readonly #loaded: Promise<void>;
  #hasEnded = false;

  constructor({ entry, data, limits, functions, onLoaded, onLost }: WorkerThreadOptions<Ours>) {
    const workerData: ThreadData = { task: entry.task, data };
    const worker = new Worker(entry.url, { workerData, resourceLimits: limits });
    this.#worker = worker;
    this.#loaded = loadedWorker(worker);
    this.channel = new Channel<Theirs, Ours>(
      {
        postMessage: (message, transfer) => worker.postMessage(message, transfer),
        on: (event, listener) =>
          worker.on(event, (message: unknown) => {
            if (this.#hasEnded) {
              return;
            }
            if (message === LOADED) {
              onLoaded?.();
            } else {
              listener(message);
            }
          }),
      },
      functions,
    );
    const lose = (error: unknown): void => {
      if (this.#hasEnded) {
        return;
      }
      this.#hasEnded = true;
      const cause = error instanceof Error ? error : new Error(String(error));
      this.channel.close(cause);
      onLost(cause);
    };
    worker.on("error", lose);
    worker.on("exit", () => lose(new Error("a worker thread ended")));
    worker.unref();
  }

  /** Ends the thread, also during a call. Its messages are ignored from now on. Idempotent. */
  async end(): Promise<void> {
    this.#hasEnded = true;
    this.channel.close();
    await endWorker(this.#worker, this.#loaded);
  }
}

/** Resolves when the thread sent its first message, which it does after it loaded its modules, or when it ended. Never rejects. */
export const loadedWorker = async (worker: Worker): Promise<void> => {
  const waiting = new AbortController();
  const { signal } = waiting;
  const first = Promise.race([once(worker, "message", { signal }), once(worker, "exit", { signal })]);
  // An `error` event of the thread rejects `first`. It ends the wait as well.
  await Promise.allSettled([first]);
  waiting.abort();
};

/**
 * Terminates a thread. `loaded` is the promise of `loadedWorker`.
 * V8 aborts the whole process if a thread is terminated while it loads its modules, so this waits for `loaded`.
 */
export const endWorker = async (worker: Worker, loaded: Promise<void>): Promise<void> => {
  // The process must not exit during the wait.
  worker.ref();
  await loaded;
  await worker.terminate();
};
