import { SECONDS } from "./buckets.ts";
import type { MetricFactory } from "./metricFactory.ts";

/**
 * The end of a request that has a price. `failed`: an error that is not charged. `left`: the client disconnected.
 * `unsettled`: the facilitator refused to settle. `unknown`: it did not say whether it settled.
 */
const PAYMENT_RESULTS = [
  "paid",
  "unpaid",
  "invalid",
  "expired",
  "replayed",
  "failed",
  "left",
  "unsettled",
  "unknown",
  "unavailable",
] as const;

export type PaymentResult = (typeof PAYMENT_RESULTS)[number];

const OPERATIONS = ["verify", "settle"] as const;

/** Declares the metrics of payments. */
export const paymentMetrics = (metrics: MetricFactory) => ({
  payments: metrics.counter("payments_total", "Requests with a price (x402) by result", {
    result: PAYMENT_RESULTS,
  }),
  paidTokens: metrics.total("payment_tokens_total", "Amount of all settled payments, in whole tokens"),
  facilitatorSeconds: metrics.histogram(
    "facilitator_seconds",
    "Duration of the requests that the facilitator answered",
    SECONDS,
    { operation: OPERATIONS },
  ),
  facilitatorFailures: metrics.counter("facilitator_failures_total", "Requests that the facilitator did not answer", {
    operation: OPERATIONS,
  }),
});
