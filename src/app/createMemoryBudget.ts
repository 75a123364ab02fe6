import { availableParallelism } from "node:os";
import type { Config } from "../config/schema.ts";
import {
  defaultBudgetBytes,
  exceedsLimit,
  type MachineMemory,
  MEMORY_KINDS,
  MemoryBudget,
  readMachineMemory,
} from "../limits/memoryBudget.ts";
import { defaultWorkers } from "../runs/evmWorkers.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";

const MIB = 1024 * 1024;

type MemoryConfig = Pick<Config, "cache" | "chains" | "server">;

const cacheBytesOf = ({ cache, chains }: Pick<Config, "cache" | "chains">): number =>
  chains.reduce((sum, { state }) => sum + (state.follow === false ? 0 : state.cacheBytes), cache.memoryBytes);

/** All chains share the threads: the pool has as many as the chain with the most needs. Each chain with a feed has one more. */
const threadsOf = ({ chains }: Pick<Config, "chains">): number => {
  const executed = chains.filter(({ forks }) => forks !== "none");
  const shared = executed.map(({ simulate }) => simulate.workers ?? defaultWorkers(availableParallelism()));
  return Math.max(0, ...shared) + executed.filter(({ pending }) => pending.feeds.length > 0).length;
};

/** The configured budget, or the default for this machine, in bytes. */
const budgetBytesOf = (config: MemoryConfig, machine: MachineMemory = readMachineMemory()): number =>
  config.server.memoryBudgetBytes ?? defaultBudgetBytes(machine, cacheBytesOf(config));

/** Creates the memory budget of the process. Warns if caches, budget and threads may need more than the container has. */
export const createMemoryBudget = (
  config: MemoryConfig,
  { log, metrics }: Pick<Telemetry, "log" | "metrics">,
  machine: MachineMemory = readMachineMemory(),
): MemoryBudget => {
  const cacheBytes = cacheBytesOf(config);
  const maxBytes = budgetBytesOf(config, machine);
  const budget = new MemoryBudget(maxBytes);
  metrics.beforeScrape.add(() => {
    for (const kind of MEMORY_KINDS) {
      metrics.memoryUsedBytes.set({ kind }, budget.usedBy(kind));
      metrics.memoryRefused.inc({ kind }, budget.takeRefusals(kind));
    }
  });
  const threads = threadsOf(config);
  const neededBytes = exceedsLimit(machine, { cacheBytes, budgetBytes: maxBytes, threads });
  if (neededBytes !== undefined) {
    log.warn(
      {
        limitMiB: Math.floor((machine.limitBytes ?? 0) / MIB),
        neededMiB: Math.ceil(neededBytes / MIB),
        cachesMiB: Math.ceil(cacheBytes / MIB),
        budgetMiB: Math.ceil(maxBytes / MIB),
        threads,
      },
      "caches, memory budget and worker threads together may exceed the container's memory limit",
    );
  }
  return budget;
};
