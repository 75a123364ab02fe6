import { readdirSync, readFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { cpuUsage, memoryUsage } from "node:process";
import { getHeapStatistics } from "node:v8";
import type { MetricFactory } from "./metricFactory.ts";
import type { Gauge } from "./promClient.ts";

const RESOLUTION_MS = 10;
const NANOSECONDS = 1e9;
const MICROSECONDS = 1e6;

const setOrRemove = (gauge: Gauge, value: number | undefined): void =>
  value === undefined ? gauge.remove() : gauge.set(value);

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

/** Files and sockets that are open. Undefined on systems without /proc. */
const countOpenFiles = (): number | undefined => {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return undefined;
  }
};

/** The limit of open files. Undefined on systems without /proc, and without a limit. */
const readMaxOpenFiles = (): number | undefined => {
  try {
    const [, limit] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return limit === undefined ? undefined : Number(limit);
  } catch {
    return undefined;
  }
};

/** Declares the metrics of the runtime: CPU, memory and open files. */
export const runtimeMetrics = (metrics: MetricFactory) => {
  const readDelaySeconds = createEventLoopDelay();
  const maxOpenFiles = readMaxOpenFiles();
  return {
    buildInfo: metrics.gauge("build_info", "1, with the versions of forebay and Node.js", {
      version: { first: [] },
      node_version: { first: [] },
    }),
    eventLoopSeconds: metrics.level(
      "event_loop_delay_seconds",
      "Event loop delay, 99th percentile since the last scrape",
      (gauge) => gauge.set(readDelaySeconds()),
    ),
    cpuSeconds: metrics.collected("cpu_seconds_total", "CPU time of the process, all threads together", () => {
      const { user, system } = cpuUsage();
      return (user + system) / MICROSECONDS;
    }),
    residentBytes: metrics.level("resident_memory_bytes", "Resident memory of the process", (gauge) =>
      gauge.set(memoryUsage.rss()),
    ),
    heapBytes: metrics.level("heap_bytes", "Used heap of the main thread", (gauge) =>
      gauge.set(getHeapStatistics().used_heap_size),
    ),
    logLinesDropped: metrics.total("log_lines_dropped_total", "Log lines that stdout did not take in time"),
    openFiles: metrics.level("open_files", "Open files and sockets; absent without /proc", (gauge) =>
      setOrRemove(gauge, countOpenFiles()),
    ),
    maxOpenFiles: metrics.level("max_open_files", "Limit of open files and sockets; absent without /proc", (gauge) =>
      setOrRemove(gauge, maxOpenFiles),
    ),
  };
};
