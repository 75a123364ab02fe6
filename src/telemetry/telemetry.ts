import process from "node:process";
import { type DestinationStream, type LoggerOptions, pino } from "pino";
import type { Tracer } from "../core/trace.ts";
import { cacheMetrics } from "./cacheMetrics.ts";
import { feedMetrics, headMetrics, logMetrics, pendingMetrics, simulationMetrics } from "./chainMetrics.ts";
import { accessMetrics, paymentMetrics, requestMetrics, subscriptionMetrics, usageMetrics } from "./clientMetrics.ts";
import { MetricFactory } from "./metricFactory.ts";
import { runtimeMetrics } from "./processMetrics.ts";
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
  /** The share of calls with a line, from 0 to 1. A reload changes it, like the level of the log. */
  readonly requestLog: { share: number };
}

interface TelemetryOptions {
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
    requestLog: { share: 0 },
  };
};

/** At most one line of each kind is logged in this time. It has the number of skipped lines. */
const FIRST_SAMPLE_MS = 1_000;
/** The time doubles with each line, up to this limit. After a pause of this length, it is the first time again. */
const MAX_SAMPLE_MS = 60_000;
/** Kinds in memory. The texts are constants, and chains and nodes are configured. */
const MAX_KINDS = 10_000;
/** pino's number of the level `warn`. */
const WARN = 40;

/** Samples the lines of one kind: a few show an outage as well as a million. */
export class LineSampler {
  #nextMs = Number.NEGATIVE_INFINITY;
  #sampleMs = FIRST_SAMPLE_MS;
  #skipped = 0;

  /** Returns the number of lines that were skipped before this one. Undefined if this one is skipped. */
  take(): number | undefined {
    const nowMs = performance.now();
    if (nowMs < this.#nextMs) {
      this.#skipped++;
      return undefined;
    }
    this.#sampleMs =
      nowMs > this.#nextMs + MAX_SAMPLE_MS ? FIRST_SAMPLE_MS : Math.min(2 * this.#sampleMs, MAX_SAMPLE_MS);
    this.#nextMs = nowMs + this.#sampleMs;
    const skipped = this.#skipped;
    this.#skipped = 0;
    return skipped;
  }
}

/** Returns the kind of an error line: its text, chain and node. Undefined for a line without an error. */
const kindOf = (fields: unknown, text: unknown): string | undefined => {
  if (typeof fields !== "object" || fields === null || !("err" in fields)) {
    return undefined;
  }
  const chain = "chain" in fields ? fields.chain : "";
  const node = "node" in fields ? fields.node : "";
  return `${text}\n${chain}\n${node}`;
};

type LogMethod = NonNullable<NonNullable<LoggerOptions["hooks"]>["logMethod"]>;

/** Creates the hook that samples every line of level warn or above that has an error (`err`). */
const createErrorSampling = (): LogMethod => {
  const samplers = new Map<string, LineSampler>();
  const samplerOf = (kind: string): LineSampler => {
    const sampler = samplers.get(kind) ?? new LineSampler();
    if (samplers.size >= MAX_KINDS) {
      samplers.clear();
    }
    samplers.set(kind, sampler);
    return sampler;
  };
  return function (args, method, level) {
    const fields: unknown = args[0];
    const kind = level >= WARN ? kindOf(fields, args[1]) : undefined;
    const skipped = kind === undefined ? 0 : samplerOf(kind).take();
    if (skipped === 0) {
      method.apply(this, args);
    } else if (skipped !== undefined && typeof fields === "object") {
      method.apply(this, [{ ...fields, skipped }, args[1] ?? ""]);
    }
  };
};
