import { type MessagePort, parentPort, workerData } from "node:worker_threads";

/** The first message of a thread. */
export const LOADED = "loaded";

/** The `workerData` of a thread. */
export interface ThreadData {
  readonly task: string;
  readonly data: unknown;
}

/** The code of a thread: it opens a channel on the port. `data` is the plain data that the main thread started it with. */
export type ThreadTask = (port: MessagePort, data: unknown) => Promise<void> | void;

/** Starts the task in this worker thread, and reports to the main thread that it is loaded. */
export const startTask = async (task: ThreadTask): Promise<void> => {
  if (parentPort === null) {
    throw new Error("a task runs in a worker thread");
  }
  await task(parentPort, (workerData as ThreadData).data);
  parentPort.postMessage(LOADED);
};
