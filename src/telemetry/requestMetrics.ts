import { BYTES, SECONDS } from "./buckets.ts";
import { CHAIN, METHOD, type MetricFactory } from "./metricFactory.ts";

/** The result of a call. `left`: the client disconnected before the result. */
const OUTCOMES = [
  "ok",
  "left",
  "invalid",
  "refused",
  "limited",
  "nodeError",
  "unavailable",
  "timeout",
  "tooLarge",
  "internal",
] as const;
export type OutcomeLabel = (typeof OUTCOMES)[number];

/** Any HTTP status; these begin at 0. */
const STATUSES = { first: [200, 204, 400, 401, 404, 405, 415, 429, 503, 504] };

/** The users of the memory budget. */
const MEMORY_USES = [
  "requests",
  "responses",
  "executions",
  "upstream",
  "logs",
  "filters",
  "subscriptions",
  "feed",
] as const;

/** Declares the metrics of calls and HTTP requests. */
export const requestMetrics = (metrics: MetricFactory) => {
  const beforeScrape = new Set<() => void>();
  return {
    requests: metrics.counter("requests_total", "Calls by what the client received", {
      chain: CHAIN,
      method: METHOD,
      outcome: OUTCOMES,
    }),
    requestSeconds: metrics.histogram("request_seconds", "Duration of a call", SECONDS, {
      chain: CHAIN,
      method: METHOD,
    }),
    savedCalls: metrics.counter("saved_calls_total", "Calls that were answered without a call to a node", {
      chain: CHAIN,
    }),
    savedUnits: metrics.counter("saved_units_total", "Provider units of calls that were answered without a node", {
      chain: CHAIN,
    }),
    // It is collected before the responses, so that counts from HttpCounts are copied first.
    inFlight: metrics.level("requests_in_flight", "HTTP requests in flight", () => {
      for (const copyCounts of beforeScrape) {
        copyCounts();
      }
    }),
    memoryUsedBytes: metrics.gauge("memory_budget_used_bytes", "Bytes of the memory budget in use, by what uses them", {
      kind: MEMORY_USES,
    }),
    memoryLimitBytes: metrics.level("memory_budget_bytes", "Size of the memory budget"),
    memoryRefused: metrics.counter("memory_budget_refused_total", "Work refused without room in the memory budget", {
      kind: MEMORY_USES,
    }),
    /** Called before the HTTP metrics are collected. */
    beforeScrape,
    httpResponses: metrics.counter("http_responses_total", "HTTP responses by status", { status: STATUSES }),
    passThroughFailures: metrics.counter(
      "pass_through_failures_total",
      "Passed-through requests that forebay refused (path, length) or that the target did not answer",
      { chain: CHAIN, reason: ["path", "length", "unreachable", "timeout"] },
    ),
    requestBytes: metrics.distribution("request_bytes", "Size of a request body", BYTES),
    responseBytes: metrics.distribution("response_bytes", "Size of a response body before compression", BYTES),
  };
};
