import { setTimeout as sleep } from "node:timers/promises";

/** A monotonic clock. Tests replace it. */
export interface Clock {
  nowMs(): number;
  /** Resolves early when the signal is aborted. */
  sleep(forMs: number, signal: AbortSignal): Promise<void>;
}

/** The monotonic clock of the process. */
export const systemClock: Clock = {
  nowMs: () => performance.now(),
  sleep: async (forMs, signal) => {
    try {
      await sleep(forMs, undefined, { signal });
    } catch {
      // The signal was aborted: the caller checks the reason.
      return;
    }
  },
};
