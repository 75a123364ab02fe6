import process from "node:process";
import { type DestinationStream, type LoggerOptions, pino } from "pino";
import type { Tracer } from "../core/trace.ts";
import { cacheMetrics } from "./cacheMetrics.ts";
import { feedMetrics, headMetrics, logMetrics, pendingMetrics, simulationMetrics } from "./chainMetrics.ts";
import { accessMetrics, paymentMetrics, requestMetrics, subscriptionMetrics, usageMetrics } from "./clientMetrics.ts";
import { createErrorSampling } from "./lineSampler.ts";
import { MetricFactory } from "./metricFactory.ts";
import { clusterMetrics, runtimeMetrics } from "./processMetrics.ts";
import { Registry } from "./promClient.ts";
import { stateMetrics, stateUnitMetrics } from "./stateMetrics.ts";
import {
  nodeHeadMetrics,
  nodeMetrics,
  nodeUseMetrics,
  upstreamMetrics,
  verificationMetrics,
} from "./upstreamMetrics.ts";

/** Bytes of lines that stdout has not taken yet: a full disk, or a reader that has stopped. Further lines are dropped. */
const MAX_UNSENT_BYTES = 1024 * 1024;
/** A retry follows 100 ms after the last. */
const MAX_RETRIES_AT_EXIT = 10;

/**
 * Creates the destination of the log: stdout, written in the background. A line never waits, and no error of stdout ends the
 * process. `onDrop` is called with each line that is lost.
 */
const createLogDestination = (onDrop: () => void): DestinationStream => {
  let isFailing = false;
  let isEnding = false;
  let retries = 0;
  const destination = pino.destination({
    fd: process.stdout.fd,
    sync: false,
    maxLength: MAX_UNSENT_BYTES,
    retryEAGAIN: () => !isEnding || retries++ < MAX_RETRIES_AT_EXIT,
  });
  destination.on("drop", onDrop);
  // The lines stay in the buffer, and the next line tries again.
  destination.on("error", () => {
    isFailing = true;
  });
  destination.on("write", () => {
    isFailing = false;
  });
  const flushSync = destination.flushSync.bind(destination);
  // Called at the end of the process. On a full disk it would retry for ever.
  destination.flushSync = () => {
    isEnding = true;
    if (isFailing) {
      return;
    }
    try {
      flushSync();
    } catch (error) {
      process.stderr.write(`forebay: the last log lines were not written: ${String(error)}\n`);
    }
  };
  return destination;
};

export type Log = pino.Logger;

/** Declares every metric of the process, in the order of its documentation. */
const declareMetrics = (factory: MetricFactory) => ({
  ...requestMetrics(factory),
  ...usageMetrics(factory),
  ...cacheMetrics(factory),
  ...upstreamMetrics(factory),
  ...nodeHeadMetrics(factory),
  ...nodeMetrics(factory),
  ...nodeUseMetrics(factory),
  ...verificationMetrics(factory),
  ...logMetrics(factory),
  ...headMetrics(factory),
  ...feedMetrics(factory),
  ...pendingMetrics(factory),
  ...simulationMetrics(factory),
  ...stateMetrics(factory),
  ...stateUnitMetrics(factory),
  ...subscriptionMetrics(factory),
  ...accessMetrics(factory),
  ...paymentMetrics(factory),
  ...runtimeMetrics(factory),
  ...clusterMetrics(factory),
});

export type Metrics = ReturnType<typeof declareMetrics>;

export interface Telemetry {
  readonly log: Log;
  readonly metrics: Metrics;
  /** Begins the series of the declared metrics. */
  readonly series: Pick<MetricFactory, "beginProcess" | "beginChain">;
  readonly registry: Registry;
  /** Undefined unless tracing is on. */
  readonly tracer: Tracer | undefined;
}

export interface TelemetryOptions {
  /** A level of pino, or `silent` for no log. */
  readonly level?: string;
  readonly tracer?: Tracer | undefined;
}

/** Fields that never reach a log. URLs are logged by node name only; these names are removed as a second barrier. */
const REDACTED = [
  "url",
  "*.url",
  "headers.authorization",
  "*.headers.authorization",
  "password",
  "*.password",
  "key",
  "*.key",
];

/** Creates the logger (JSON lines on stdout) and the metrics of one process. */
export const createTelemetry = (options: TelemetryOptions = {}): Telemetry => {
  const registry = new Registry();
  const series = new MetricFactory(registry);
  const metrics = declareMetrics(series);
  const logOptions: LoggerOptions = {
    level: options.level ?? "info",
    formatters: { level: (level) => ({ level }) },
    hooks: { logMethod: createErrorSampling() },
    redact: { paths: REDACTED, censor: "[redacted]" },
  };
  return {
    log: pino(
      logOptions,
      createLogDestination(() => metrics.logLinesDropped.inc()),
    ),
    metrics,
    series,
    registry,
    tracer: options.tracer,
  };
};
