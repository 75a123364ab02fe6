import { CHAIN, type MetricFactory } from "./metricFactory.ts";

const KINDS = [
  "newHeads",
  "logs",
  "syncing",
  "newPendingTransactions",
  "pendingLogs",
  "newFlashblocks",
  "newFlashblockTransactions",
] as const;

/** Declares the metrics of WebSockets and subscriptions. */
export const subscriptionMetrics = (metrics: MetricFactory) => ({
  webSockets: metrics.level("websockets", "Open WebSocket connections"),
  subscriptions: metrics.gaugeFromZero("subscriptions", "Subscriptions by kind", { chain: CHAIN, kind: KINDS }),
  delivered: metrics.counter("delivered_total", "Notifications sent by kind", { chain: CHAIN, kind: KINDS }),
  slowClosed: metrics.total("slow_consumers_closed_total", "WebSockets closed because the client read slowly"),
});
