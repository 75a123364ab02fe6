import { readdirSync, readFileSync } from "node:fs";
import { constants, monitorEventLoopDelay, PerformanceObserver } from "node:perf_hooks";
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

const GC_KINDS = ["minor", "major", "incremental", "weak"] as const;
const GC_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5];

const GC_KIND_OF: Readonly<Record<number, (typeof GC_KINDS)[number]>> = {
  [constants.NODE_PERFORMANCE_GC_MINOR]: "minor",
  [constants.NODE_PERFORMANCE_GC_MAJOR]: "major",
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: "incremental",
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: "weak",
};

/** Calls `onPause` with each garbage collection of this thread. */
const observeCollections = (onPause: (kind: (typeof GC_KINDS)[number], seconds: number) => void): void => {
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { detail }: { detail?: { kind?: number } } = Object(entry);
      const kind = GC_KIND_OF[detail?.kind ?? -1];
      if (kind !== undefined) {
        onPause(kind, entry.duration / 1000);
      }
    }
  }).observe({ entryTypes: ["gc"] });
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

/** Declares the metrics of the runtime: CPU, memory, garbage collection and open files. */
export const runtimeMetrics = (metrics: MetricFactory) => {
  const readDelaySeconds = createEventLoopDelay();
  const maxOpenFiles = readMaxOpenFiles();
  const gcSeconds = metrics.histogram("gc_seconds", "Pauses of the main thread by garbage collection", GC_SECONDS, {
    kind: GC_KINDS,
  });
  observeCollections((kind, seconds) => gcSeconds.observe({ kind }, seconds));
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
    heapLimitBytes: metrics.level("heap_limit_bytes", "Limit of the main thread's heap", (gauge) =>
      gauge.set(getHeapStatistics().heap_size_limit),
    ),
    gcSeconds,
    logLinesDropped: metrics.total("log_lines_dropped_total", "Log lines that stdout did not take in time"),
    openFiles: metrics.level("open_files", "Open files and sockets; absent without /proc", (gauge) =>
      setOrRemove(gauge, countOpenFiles()),
    ),
    maxOpenFiles: metrics.level("max_open_files", "Limit of open files and sockets; absent without /proc", (gauge) =>
      setOrRemove(gauge, maxOpenFiles),
    ),
  };
};
