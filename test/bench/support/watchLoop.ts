import { setImmediate as nextTick } from "node:timers/promises";
import { threadCpuMs } from "./threadCpu.ts";

/** Linux updates the CPU time of a thread exactly when the thread stops, else every few milliseconds. */
const PAUSE_MS = 0.02;
const never = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

const exactCpuMs = (): number => {
  Atomics.wait(never, 0, 0, PAUSE_MS);
  return threadCpuMs();
};

/** Records the CPU time of each turn of the event loop, until the signal aborts. Other load on the machine does not count. */
export const watchLoop = async (signal: AbortSignal): Promise<number[]> => {
  const turnsMs: number[] = [];
  let lastMs = exactCpuMs();
  while (!signal.aborted) {
    await nextTick();
    const nowMs = exactCpuMs();
    turnsMs.push(nowMs - lastMs);
    lastMs = nowMs;
  }
  return turnsMs;
};
