import { totalmem } from "node:os";

const GIB = 1024 ** 3;
const MAX_DEFAULT_BYTES = 4 * GIB;
/** A smaller budget refuses ordinary requests. */
const MIN_DEFAULT_BYTES = 32 * 1024 * 1024;
/** Resident memory of an idle process without its caches and threads. */
const IDLE_BYTES = 110 * 1024 * 1024;
/** Resident memory of a warm thread that executes EVM code. */
const THREAD_BYTES = 40 * 1024 * 1024;

export interface MachineMemory {
  /** The limit of the container (cgroup v2 or v1). Undefined without a limit. */
  readonly limitBytes: number | undefined;
  readonly totalBytes: number;
}

/** Reads the limit of the container and the memory of the machine. */
export const readMachineMemory = (): MachineMemory => {
  const totalBytes = totalmem();
  const limitBytes = process.constrainedMemory();
  return { limitBytes: limitBytes > 0 && limitBytes < totalBytes ? limitBytes : undefined, totalBytes };
};

/** The default of `server.memoryBudgetBytes`: half of what the limit leaves beside the caches, else half of the machine's memory. */
export const defaultBudgetBytes = ({ limitBytes, totalBytes }: MachineMemory, cacheBytes: number): number =>
  limitBytes === undefined
    ? Math.min(totalBytes / 2, MAX_DEFAULT_BYTES)
    : Math.max(Math.floor((limitBytes - cacheBytes) / 2), MIN_DEFAULT_BYTES);

export interface PlannedMemory {
  readonly cacheBytes: number;
  readonly budgetBytes: number;
  /** Threads that execute EVM code. */
  readonly threads: number;
}

/** Returns the memory that the process may need, in bytes, if that is more than the container's limit. */
export const exceedsLimit = (
  { limitBytes }: MachineMemory,
  { cacheBytes, budgetBytes, threads }: PlannedMemory,
): number | undefined => {
  const neededBytes = IDLE_BYTES + cacheBytes + budgetBytes + threads * THREAD_BYTES;
  return limitBytes !== undefined && neededBytes > limitBytes ? neededBytes : undefined;
};
