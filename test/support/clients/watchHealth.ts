import assert from "node:assert/strict";
import { PerformanceObserver } from "node:perf_hooks";
import { setImmediate as turn } from "node:timers/promises";

export interface HealthWatch {
  /** Sends one request to `/healthz`. */
  probe(): Promise<void>;
  /** Ends the watch. Returns the longest time, in ms, for which this thread's work delayed a response. */
  end(): Promise<number>;
}

interface Period {
  readonly startMs: number;
  readonly endMs: number;
}

const overlapMs = (one: Period, other: Period): number =>
  Math.max(0, Math.min(one.endMs, other.endMs) - Math.max(one.startMs, other.startMs));

/**
 * Watches whether work of the service blocks `/healthz`. The service runs in this thread, next to its nodes and the test.
 * A response counts with this thread's CPU time, because other programs use the CPU too, and without garbage collection.
 */
export const watchHealth = (opsUrl: string): HealthWatch => {
  const probes: (Period & { readonly busyMs: number })[] = [];
  const pauses: Period[] = [];
  const addPauses = (entries: readonly PerformanceEntry[]): void => {
    for (const { startTime, duration } of entries) {
      pauses.push({ startMs: startTime, endMs: startTime + duration });
    }
  };
  const observer = new PerformanceObserver((list) => addPauses(list.getEntries()));
  observer.observe({ entryTypes: ["gc"] });
  return {
    probe: async () => {
      const startMs = performance.now();
      const startCpu = process.threadCpuUsage();
      assert.equal((await fetch(`${opsUrl}/healthz`)).status, 200);
      const { user, system } = process.threadCpuUsage(startCpu);
      const endMs = performance.now();
      probes.push({ startMs, endMs, busyMs: Math.min(endMs - startMs, (user + system) / 1_000) });
    },
    end: async () => {
      // The observer gets its entries in a later turn of the event loop.
      await turn();
      addPauses(observer.takeRecords());
      observer.disconnect();
      const delays = probes.map((probe) =>
        pauses.reduce((delayMs, pause) => delayMs - overlapMs(probe, pause), probe.busyMs),
      );
      return Math.max(0, ...delays);
    },
  };
};
