import { once } from "node:events";
import type { Worker } from "node:worker_threads";

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
