import { setTimeout as sleep } from "node:timers/promises";

/** Time as the followers of heads see it; tests bring their own. */
export interface Clock {
  nowMs(): number;
  /** Ends early, without an error, when the signal is aborted. */
  sleep(forMs: number, signal: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  sleep: async (forMs, signal) => {
    try {
      await sleep(forMs, undefined, { signal });
    } catch {
      // Woken: the caller looks at what has changed.
    }
  },
};
