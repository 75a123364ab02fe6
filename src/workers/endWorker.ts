import { once } from "node:events";
import type { Worker } from "node:worker_threads";

/** Resolves when the thread said anything, as it does first when its modules are loaded, or is gone. */
export const loadedWorker = async (worker: Worker): Promise<void> => {
  const isOver = new AbortController();
  const { signal } = isOver;
  const gone = Promise.race([once(worker, "message", { signal }), once(worker, "exit", { signal })]);
  await gone.catch(() => {});
  isOver.abort();
};

/** V8 ends the whole process where a thread is ended while it loads its modules: that is waited for. */
export const endWorker = async (worker: Worker, loaded: Promise<void>): Promise<void> => {
  // It holds the process as long as it is waited for.
  worker.ref();
  await loaded;
  await worker.terminate();
};
