import { monitorEventLoopDelay } from "node:perf_hooks";
import { memoryUsage } from "node:process";
import { pino } from "pino";
import { Counter, Gauge, Histogram, Registry } from "prom-client";

export type Log = pino.Logger;

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const BYTES = [256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 16_777_216, 134_217_728];
const COUNTS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 1024];

const PREFIX = "forebay_";

const RESOLUTION_MS = 10;
const NANOSECONDS = 1e9;

/** Seconds that a timer came late at most, in 99 of 100 cases since the last call. Node counts the timer's own period in. */
const createEventLoopDelay = (): (() => number) => {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  return () => {
    const lateSeconds = delays.percentile(99) / NANOSECONDS - RESOLUTION_MS / 1000;
    delays.reset();
    return Math.max(0, lateSeconds);
  };
};

/** Every metric of the process: name without prefix, labels from closed sets, help. Each is told in README's table. */
const createMetrics = (registry: Registry) => {
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Counter<L>({ name: PREFIX + name, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Gauge<L>({ name: PREFIX + name, help, labelNames, registers });
  const histogram = <L extends string>(name: string, help: string, buckets: number[], ...labelNames: L[]) =>
    new Histogram<L>({ name: PREFIX + name, help, labelNames, buckets, registers });
  /** Read when it is scraped. */
  const measured = (name: string, help: string, read: () => number) => {
    const metric: Gauge = new Gauge({ name: PREFIX + name, help, registers, collect: () => metric.set(read()) });
    return metric;
  };
  /** No series until it is first set: prom-client would show 0, which an alert takes for a fault. */
  const absent = (metric: Gauge): Gauge => {
    metric.remove();
    return metric;
  };

  const beforeScrape = new Set<() => void>();

  return {
    requests: counter("requests_total", "Calls by what the client received", "chain", "method", "outcome"),
    requestSeconds: histogram("request_seconds", "From call to answer", SECONDS, "chain", "method"),
    inFlight: new Gauge({
      name: `${PREFIX}requests_in_flight`,
      help: "HTTP requests being answered",
      registers,
      // It is collected before the responses: what is counted elsewhere is handed over first.
      collect: () => {
        for (const handOver of beforeScrape) handOver();
      },
    }),
    /** Called before the HTTP metrics are collected. */
    beforeScrape,
    httpResponses: counter("http_responses_total", "HTTP responses by status", "status"),
    requestBytes: histogram("request_bytes", "Size of a request body", BYTES),
    responseBytes: histogram("response_bytes", "Size of a response body before compression", BYTES),

    cacheLookups: counter("cache_lookups_total", "Cache look-ups by outcome", "chain", "class", "outcome"),
    cacheStored: counter("cache_stored_total", "Answers kept", "chain", "class"),
    cacheBytes: gauge("cache_bytes", "Bytes in the memory cache"),
    cacheEntries: gauge("cache_entries", "Entries in the memory cache"),
    cacheEvictions: counter("cache_evictions_total", "Entries dropped from memory to make room"),
    cacheAgeSeconds: histogram(
      "cache_hit_age_seconds",
      "Age of an entry when it was served",
      [0.1, 1, 10, 60, 600, 3600, 86_400, 604_800],
    ),
    redisUp: absent(gauge("redis_up", "1 while Redis answers within its deadline; absent without Redis")),
    redisErrors: counter("redis_errors_total", "Redis operations that came to nothing, by reason", "reason"),
    redisSeconds: histogram("redis_seconds", "Duration of a Redis operation", SECONDS, "operation"),

    upstreamRequests: counter("upstream_requests_total", "Requests to a node by outcome", "chain", "node", "outcome"),
    upstreamCalls: counter(
      "upstream_calls_total",
      "Calls to a node; batch items count singly",
      "chain",
      "node",
      "method",
    ),
    upstreamSeconds: histogram("upstream_seconds", "Duration of a request to a node", SECONDS, "chain", "node"),
    upstreamRetries: counter("upstream_retries_total", "Requests sent again on another node or later", "chain"),
    upstreamHedges: counter("upstream_hedges_total", "Requests sent a second time before the first answered", "chain"),
    upstreamHead: gauge("upstream_head", "Newest block number that a node announced", "chain", "node"),
    upstreamLag: gauge("upstream_lag_blocks", "Blocks that a node is behind the served head", "chain", "node"),
    upstreamBreaker: gauge("upstream_breaker_open", "1 while a node is not asked", "chain", "node"),
    upstreamWrongChain: gauge(
      "upstream_wrong_chain",
      "1 while a node is suspended because it is of another chain",
      "chain",
      "node",
    ),
    upstreamRejectedHeads: counter(
      "upstream_rejected_heads_total",
      "Heads of a node that were not served because they could not be confirmed",
      "chain",
      "node",
    ),
    upstreamSuspended: gauge(
      "upstream_suspended",
      "1 while a node is asked only where no other can answer, because it gave a wrong answer",
      "chain",
      "node",
    ),
    upstreamSpanLimit: gauge("upstream_span_limit_blocks", "Learned limit of a log range, 0 for none", "chain", "node"),

    verifyFailures: counter(
      "verify_failures_total",
      "Answers of a node that were wrong and were not served, by check",
      "chain",
      "node",
      "check",
    ),
    verifySkipped: counter(
      "verify_skipped_total",
      "Checks of served answers that could not be computed, by check",
      "chain",
      "check",
    ),
    verifyOff: gauge(
      "verify_check_off",
      "1 where a check is off because it failed on all nodes from the start",
      "chain",
      "check",
    ),

    logSpans: counter("log_spans_total", "Spans asked from nodes by outcome", "chain", "outcome"),
    logSplits: counter("log_splits_total", "Spans halved, by what was halved", "chain", "dimension"),
    logSegments: counter("log_segments_total", "Segments by where they came from", "chain", "source"),
    logRangeBlocks: histogram(
      "log_range_blocks",
      "Blocks asked for by one query",
      [1, 10, 100, 1000, 2000, 10_000, 100_000, 1_000_000],
      "chain",
    ),

    chainServing: gauge("chain_serving", "1 while the chain is known and a node of it can be asked", "chain"),
    head: gauge("head", "Served head by tag", "chain", "tag"),
    headAgeSeconds: gauge("head_age_seconds", "Age of the served head by its own time", "chain"),
    reorgs: counter("reorgs_total", "Reorganisations", "chain"),
    reorgDepth: histogram("reorg_depth_blocks", "Blocks replaced by one reorganisation", COUNTS, "chain"),

    feedMessages: counter("feed_messages_total", "Messages of the sequencer's feed by decision", "chain", "decision"),
    feedAgeSeconds: gauge("feed_age_seconds", "Time since the last good message", "chain"),
    feedConnected: gauge("feed_connected", "Feed connections that are open", "chain"),
    feedReconnects: counter("feed_reconnects_total", "Feed connections made again", "chain"),
    feedGaps: counter("feed_gaps_total", "Gaps in the feed", "chain"),
    feedLead: gauge("feed_lead_blocks", "Pending block's number minus the served head", "chain"),
    pendingMismatches: counter(
      "pending_mismatches_total",
      "What was computed here and differed, by what",
      "chain",
      "what",
    ),
    pendingUnverified: counter(
      "pending_unverified_total",
      "Turns to an unverified view, whose state the node answers, by cause",
      "chain",
      "cause",
    ),
    pendingVanished: counter("pending_vanished_total", "Pre-confirmed transactions that were not sealed", "chain"),
    pendingAnswers: counter("pending_answers_total", "Answers at pending by mode", "chain", "mode"),
    pendingExecuteSeconds: histogram("pending_execute_seconds", "Executing one flashblock", SECONDS, "chain"),

    simulateRuns: counter("simulate_runs_total", "Runs in a worker by kind and outcome", "chain", "kind", "outcome"),
    simulateRounds: histogram("simulate_rounds", "Rounds of fetching that a run needed", COUNTS, "chain"),
    simulateFetched: counter("simulate_fetched_total", "State values fetched from nodes", "chain"),
    simulateSeconds: histogram("simulate_seconds", "Duration of a run", SECONDS, "chain", "kind"),
    deadlineHits: counter("simulate_deadline_total", "Runs ended by their deadline", "chain"),
    rulesUnknown: gauge("rules_unknown", "1 while the head's rules are not known: nodes execute", "chain"),
    workers: gauge("workers", "Worker threads alive; they start on first use", "chain"),
    workersMax: gauge("workers_max", "Worker threads at most", "chain"),
    workersBusy: gauge("workers_busy", "Worker threads with a run", "chain"),

    webSockets: gauge("websockets", "Open WebSocket connections"),
    subscriptions: gauge("subscriptions", "Subscriptions by kind", "chain", "kind"),
    delivered: counter("delivered_total", "Notifications sent by kind", "chain", "kind"),
    slowClosed: counter("slow_consumers_closed_total", "WebSockets closed because their reader was slow"),

    accessRefused: counter("access_refused_total", "Calls refused before they were answered, by reason", "reason"),
    limiterFailures: counter("limiter_failures_total", "Rate limits not applied because their store failed"),
    reloads: counter("config_reloads_total", "Configuration reloads by outcome", "outcome"),
    eventLoopSeconds: measured(
      "event_loop_delay_seconds",
      "Event loop delay, 99th percentile since the last scrape",
      createEventLoopDelay(),
    ),
    residentBytes: measured("resident_memory_bytes", "Resident memory of the process", memoryUsage.rss),
  };
};

export type Metrics = ReturnType<typeof createMetrics>;

export interface Telemetry {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly registry: Registry;
}

export interface TelemetryOptions {
  /** pino's level; `silent` for none. */
  readonly level?: string;
}

/** Secrets never reach a log: URLs are logged by node name only, and what is named so is cut out all the same. */
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

/** Logs (JSON lines on stdout) and metrics of one process. */
export const createTelemetry = (options: TelemetryOptions = {}): Telemetry => {
  const registry = new Registry();
  return {
    log: pino({ level: options.level ?? "info", redact: { paths: REDACTED, censor: "[redacted]" } }),
    metrics: createMetrics(registry),
    registry,
  };
};
