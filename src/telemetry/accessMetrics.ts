import type { MetricFactory } from "./metricFactory.ts";

/** Declares the metrics of access control and reloads. */
export const accessMetrics = (metrics: MetricFactory) => ({
  accessRefused: metrics.counter(
    "access_refused_total",
    "Calls and connections rejected by access control, by reason",
    {
      reason: ["key", "method", "rate", "connections", "webSockets", "passThrough"],
    },
  ),
  chargedCalls: metrics.counter(
    "access_charged_total",
    "Calls counted against a client's limit without a handled call, by reason",
    { reason: ["stateReads", "invalid", "method", "key", "payment"] },
  ),
  limiterFailures: metrics.total("limiter_failures_total", "Rate limits not applied because their store failed"),
  reloads: metrics.counter("config_reloads_total", "Configuration reloads by outcome", {
    outcome: ["applied", "refused", "replaced"],
  }),
});
