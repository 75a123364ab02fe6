import { enableCompileCache } from "node:module";
import { workerData } from "node:worker_threads";
import { startTask, type ThreadData } from "../threads/threadTask.ts";

/** The entry of every worker thread. It loads only the modules of the task that the thread was started for. */
const TASKS = {
  evm: async () => (await import("./evmRuns.ts")).evmRunsTask,
  writeSets: async () => (await import("../state/sources/writeSetTask.ts")).writeSetTask,
  storage: async () => (await import("../storage/storageTask.ts")).storageTask,
  proven: async () => (await import("../methods/provenTask.ts")).provenTask,
  verification: async () => (await import("../verification/verificationTask.ts")).verificationTask,
};

export type TaskName = keyof typeof TASKS;

// A thread does not inherit the cache of the main thread.
enableCompileCache();
const { task } = workerData as ThreadData;
if (!Object.hasOwn(TASKS, task)) {
  throw new Error(`no task is named ${task}`);
}
await startTask(await TASKS[task as TaskName]());
