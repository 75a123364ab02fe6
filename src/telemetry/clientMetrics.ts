import { OTHER_KEY } from "../core/usageStore.ts";
import { CHAIN, METHOD, type MetricFactory, SECONDS } from "./metricFactory.ts";

/**
 * The result of a call. `left`: the client disconnected before the result. `nodeError`: an error that every node would return.
 * `unavailable`: no node could answer, or the one that did returned an error of its own.
 */
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

/** What is verified of an answer: see Proof in core/rpcSource.ts. */
const PROOF_LABELS = ["proven", "checked", "stated"] as const;

/** Why a client that requires proven answers gets an error. */
const NOT_PROVEN = ["noProof", "notAgreed", "method", "pending"] as const;

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
    proofAnswers: metrics.counter("proof_answers_total", "Answers by what is verified of them", {
      chain: CHAIN,
      label: PROOF_LABELS,
    }),
    notProven: metrics.counter("not_proven_total", "Calls whose answer must be proven, and is not, by reason", {
      chain: CHAIN,
      reason: NOT_PROVEN,
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
  };
};

/** A key by its name, for the keys that cost most. The others are summed. */
const KEY = { key: { first: [OTHER_KEY] } };

/** Declares the metrics of the usage by key. */
export const usageMetrics = (metrics: MetricFactory) => ({
  keyAmounts: {
    calls: metrics.counter("key_calls_total", "Calls by key", KEY),
    units: metrics.counter("key_units_total", "Price of all calls in provider units, by key", KEY),
    savedUnits: metrics.counter("key_saved_units_total", "Price of the calls that needed no node, by key", KEY),
  },
});

const SUBSCRIPTIONS = [
  "newHeads",
  "logs",
  "transactionReceipts",
  "transactionInclusion",
  "syncing",
  "newPendingTransactions",
  "pendingLogs",
  "newFlashblocks",
  "newFlashblockTransactions",
] as const;

/** Declares the metrics of WebSockets and subscriptions. */
export const subscriptionMetrics = (metrics: MetricFactory) => ({
  webSockets: metrics.level("websockets", "Open WebSocket connections"),
  subscriptions: metrics.gaugeFromZero("subscriptions", "Subscriptions by kind", { chain: CHAIN, kind: SUBSCRIPTIONS }),
  delivered: metrics.counter("delivered_total", "Notifications sent by kind", { chain: CHAIN, kind: SUBSCRIPTIONS }),
  slowClosed: metrics.total("slow_consumers_closed_total", "WebSockets closed because the client read slowly"),
});

/** Declares the metrics of access control and reloads. */
export const accessMetrics = (metrics: MetricFactory) => ({
  accessRefused: metrics.counter(
    "access_refused_total",
    "Calls and connections rejected by access control, by reason",
    {
      reason: ["key", "method", "rate", "units", "connections", "webSockets", "passThrough"],
    },
  ),
  chargedCalls: metrics.counter(
    "access_charged_total",
    "Calls counted against a client's limit without a handled call, by reason",
    { reason: ["stateReads", "invalid", "method", "units", "key", "payment"] },
  ),
  keyBudgetRatio: metrics.gauge(
    "key_budget_ratio",
    "Share of its units of the day that a key has spent, on all replicas; above 1: spent",
    KEY,
  ),
  limiterFailures: metrics.total("limiter_failures_total", "Rate limits not applied because their store failed"),
  reloads: metrics.counter("config_reloads_total", "Configuration reloads by outcome", {
    outcome: ["applied", "refused", "replaced"],
  }),
});

/**
 * The end of a request that has a price. `failed`: an error that is not charged. `left`: the client disconnected.
 * `unsettled`: the facilitator refused to settle. `unknown`: it did not say whether it settled.
 */
const PAYMENT_RESULTS = [
  "paid",
  "unpaid",
  "invalid",
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
