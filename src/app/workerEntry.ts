import { extname } from "node:path";
import type { WorkerEntry } from "../threads/workerThread.ts";
import type { TaskName } from "./worker.ts";

/** The one worker file has the extension of this file: `.ts` in the repository, `.js` in the package. */
const WORKER_FILE = new URL(`worker${extname(import.meta.url)}`, import.meta.url);

/** Returns the entry with which a thread runs that task. */
export const workerEntry = (task: TaskName): WorkerEntry => ({ url: WORKER_FILE, task });
