import { monitorEventLoopDelay } from "node:perf_hooks";
import { memoryUsage } from "node:process";
import type { MetricFactory } from "./metricFactory.ts";

const RESOLUTION_MS = 10;
const NANOSECONDS = 1e9;

/**
 * Creates the function that returns the event loop delay in seconds: the 99th percentile since its last call.
 * Node.js includes the period of its timer, which is subtracted.
 */
const createEventLoopDelay = (): (() => number) => {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  return () => {
    const delaySeconds = delays.percentile(99) / NANOSECONDS - RESOLUTION_MS / 1000;
    delays.reset();
    return Math.max(0, delaySeconds);
  };
};

/** Declares the metrics of access control, reloads and the process. */
export const processMetrics = (metrics: MetricFactory) => {
  const readDelaySeconds = createEventLoopDelay();
  return {
    accessRefused: metrics.counter(
      "access_refused_total",
      "Calls and connections rejected by access control, by reason",
      {
        reason: ["key", "method", "rate", "connections", "webSockets"],
      },
    ),
    chargedCalls: metrics.counter(
      "access_charged_total",
      "Calls counted against a client's limit without a handled call, by reason",
      { reason: ["stateReads", "invalid", "method", "key"] },
    ),
    limiterFailures: metrics.total("limiter_failures_total", "Rate limits not applied because their store failed"),
    reloads: metrics.counter("config_reloads_total", "Configuration reloads by outcome", {
      outcome: ["applied", "refused"],
    }),
    eventLoopSeconds: metrics.level(
      "event_loop_delay_seconds",
      "Event loop delay, 99th percentile since the last scrape",
      (gauge) => gauge.set(readDelaySeconds()),
      "max",
    ),
    residentBytes: metrics.level("resident_memory_bytes", "Resident memory of the process", (gauge) =>
      gauge.set(memoryUsage.rss()),
    ),
  };
};
