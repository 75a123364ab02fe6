import type { MetricFactory } from "./metricFactory.ts";

const ROUND_BUCKETS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];

/** Declares the metrics of several processes (`server.processes`). */
export const clusterMetrics = (metrics: MetricFactory) => ({
  servingProcesses: metrics.absentLevel("processes", "Serving processes that accept connections"),
  processRestarts: metrics.total("process_restarts_total", "Serving processes that ended and were replaced"),
  processResponses: metrics.counter("process_responses_total", "HTTP responses of each serving process", {
    process: { first: [] },
  }),
  viewRoundSeconds: metrics.distribution(
    "view_round_seconds",
    "Time until all serving processes have a new view",
    ROUND_BUCKETS,
  ),
  viewsMissed: metrics.total(
    "views_missed_total",
    "Views that a serving process did not acknowledge in time; it answers nothing until it has caught up",
  ),
});
