import { OTHER_KEY } from "./keyUsage.ts";
import type { MetricFactory } from "./metricFactory.ts";

/** A key by its name, for the keys that cost most. The others are summed. */
const KEY = { key: { first: [OTHER_KEY] } };

/** Declares the metrics of the usage by key. */
export const usageMetrics = (metrics: MetricFactory) => ({
  keyAmounts: {
    calls: metrics.counter("key_calls_total", "Calls by key", KEY),
    errors: metrics.counter("key_errors_total", "Calls that ended with an error, by key", KEY),
    savedCalls: metrics.counter("key_saved_calls_total", "Calls that needed no call to a node, by key", KEY),
    units: metrics.counter("key_units_total", "Price of all calls in provider units, by key", KEY),
    savedUnits: metrics.counter("key_saved_units_total", "Price of the calls that needed no node, by key", KEY),
    receivedBytes: metrics.counter("key_received_bytes_total", "Bytes of request bodies and messages, by key", KEY),
    sentBytes: metrics.counter("key_sent_bytes_total", "Bytes of responses and events before compression, by key", KEY),
  },
});
