import { type LoggerOptions, pino } from "pino";
import type { Tracer } from "../core/trace.ts";
import { accessMetrics } from "./accessMetrics.ts";
import { cacheMetrics } from "./cacheMetrics.ts";
import { headMetrics, logMetrics } from "./chainMetrics.ts";
import { clusterMetrics } from "./clusterMetrics.ts";
import { createErrorSampling } from "./lineSampler.ts";
import { createLogDestination } from "./logDestination.ts";
import { MetricFactory } from "./metricFactory.ts";
import { paymentMetrics } from "./paymentMetrics.ts";
import { feedMetrics, pendingMetrics } from "./pendingMetrics.ts";
import { Registry } from "./promClient.ts";
import { requestMetrics } from "./requestMetrics.ts";
import { runtimeMetrics } from "./runtimeMetrics.ts";
import { simulationMetrics } from "./simulationMetrics.ts";
import { stateMetrics } from "./stateMetrics.ts";
import { stateUnitMetrics } from "./stateUnitMetrics.ts";
import { subscriptionMetrics } from "./subscriptionMetrics.ts";
import {
  nodeHeadMetrics,
  nodeMetrics,
  nodeUseMetrics,
  upstreamMetrics,
  verificationMetrics,
} from "./upstreamMetrics.ts";
import { usageMetrics } from "./usageMetrics.ts";

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
