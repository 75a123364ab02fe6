import type { EvmWorkers } from "../../../src/runs/evmWorkers.ts";
import { until } from "../clients/until.ts";

/** Starts all threads and waits until they have loaded: deadlines of runs are shorter than that may take on a busy machine. */
export const readyWorkers = async (workers: Pick<EvmWorkers, "idle" | "start">, size: number): Promise<void> => {
  workers.start();
  await until(() => workers.idle === size, "all threads are idle");
};
