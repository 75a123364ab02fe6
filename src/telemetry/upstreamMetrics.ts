import { type Check, NODE_FAULTS, type NodeErrorKind } from "../core/node.ts";
import type { HedgeReason, RetryCause } from "../core/retryPolicy.ts";
import { CHAIN, METHOD, type MetricFactory, NODE, SECONDS } from "./metricFactory.ts";

const OUTCOMES = [
  "ok",
  "billing",
  "overloaded",
  "rateLimited",
  "tooLarge",
  "tagUnsupported",
  "missingData",
  "otherBranch",
  "timeout",
  "revert",
  "rejected",
  "executionFailed",
  "invalidParams",
  "cancelled",
  "unsupportedMethod",
  "unauthorized",
  "unreachable",
  "invalidAnswer",
  "unverified",
  "other",
] as const satisfies readonly (NodeErrorKind | "ok")[];

const CHECKS = [
  "json",
  "id",
  "status",
  "form",
  "block",
  "transaction",
  "logs",
  "state",
  "header",
  "transactions",
  "receipts",
  "depositReceipts",
  "proof",
  "accessList",
] as const satisfies readonly Check[];

const isErrorKind = (outcome: (typeof OUTCOMES)[number]): outcome is Exclude<NodeErrorKind, "missingData"> =>
  outcome !== "ok" && outcome !== "missingData";

/** The causes of retries: the kinds of errors, with missing data by what is missing, and unusable responses. */
const RETRIES = [
  ...OUTCOMES.filter(isErrorKind),
  "missingBlock",
  "prunedData",
  "unexpectedNull",
  "outsideView",
  "unavailable",
] as const satisfies readonly RetryCause[];

const HEDGES = ["minimum", "quantile"] as const satisfies readonly HedgeReason[];

const BROADCASTS = ["accepted", "known", "rejected", "failed"] as const;

const OF_NODE = { chain: CHAIN, node: NODE };

/** Declares the metrics of requests to nodes. */
export const upstreamMetrics = (metrics: MetricFactory) => ({
  upstreamRequests: metrics.counter("upstream_requests_total", "Calls to a node by outcome; batch items count singly", {
    ...OF_NODE,
    outcome: OUTCOMES,
  }),
  upstreamLastError: metrics.gaugeFromZero(
    "upstream_last_error_timestamp_seconds",
    "Unix time of the last fault of a node by outcome, 0 before it. Errors of requests are no faults",
    { ...OF_NODE, outcome: NODE_FAULTS },
  ),
  upstreamRefused: metrics.counter(
    "upstream_refused_total",
    "Calls of clients that were not sent to a node, because too many calls wait for it",
    OF_NODE,
  ),
  upstreamCalls: metrics.counter("upstream_calls_total", "Calls to a node; batch items count singly", {
    ...OF_NODE,
    method: METHOD,
  }),
  upstreamUnits: metrics.counter("upstream_units_total", "Provider units of calls to a node", OF_NODE),
  upstreamSeconds: metrics.histogram("upstream_seconds", "Duration of a request to a node", SECONDS, OF_NODE),
  upstreamRetries: metrics.counter("upstream_retries_total", "Requests sent again on another node or later", {
    chain: CHAIN,
    reason: RETRIES,
  }),
  upstreamBroadcasts: metrics.counter(
    "upstream_broadcasts_total",
    "Raw transactions sent to several nodes, by the outcome of each node",
    { ...OF_NODE, outcome: BROADCASTS },
  ),
  upstreamHedges: metrics.counter(
    "upstream_hedges_total",
    "Requests sent to a second node before the first responded",
    { chain: CHAIN, reason: HEDGES },
  ),
});

/** Declares the metrics of the heads of nodes. */
export const nodeHeadMetrics = (metrics: MetricFactory) => ({
  upstreamHead: metrics.gauge("upstream_head", "Newest block number that a node announced", OF_NODE),
  upstreamLagSeconds: metrics.gauge(
    "upstream_lag_seconds",
    "Time that a node is behind the served head: blocks times the block time",
    OF_NODE,
  ),
  upstreamHeadsExcluded: metrics.gaugeFromZero(
    "upstream_heads_excluded",
    "1 while the heads of a node are ignored, because most origins have other blocks",
    OF_NODE,
  ),
  upstreamHeadsPolled: metrics.gaugeFromZero(
    "upstream_heads_polled",
    "1 while the WebSocket of a node is lost, so that its heads are polled",
    OF_NODE,
  ),
});

/** Declares the metrics of the state of nodes. */
export const nodeMetrics = (metrics: MetricFactory) => ({
  upstreamBreaker: metrics.gauge(
    "upstream_breaker_open",
    "1 while a node gets no requests because of failures",
    OF_NODE,
  ),
  upstreamWrongChain: metrics.gauge(
    "upstream_wrong_chain",
    "1 while a node is suspended because it serves another chain",
    OF_NODE,
  ),
  upstreamBudgetRatio: metrics.gauge(
    "upstream_budget_ratio",
    "Share of its units of the day that a node has got, from all replicas; above 1: spent",
    { chain: CHAIN, node: NODE },
  ),
  upstreamSuspended: metrics.gaugeFromZero(
    "upstream_suspended",
    "1 while a node is the last choice because it returned a wrong response",
    OF_NODE,
  ),
  upstreamHung: metrics.gaugeFromZero(
    "upstream_hung",
    "1 while a node is the last choice because it responds neither to requests nor to probes",
    OF_NODE,
  ),
});

/** Declares the metrics of nodes that are not used. */
export const nodeUseMetrics = (metrics: MetricFactory) => ({
  upstreamRejecting: metrics.gaugeFromZero(
    "upstream_rejecting",
    "1 while a node gets no requests because it rejects them: credentials, plan, or a rate limit that goes on",
    OF_NODE,
  ),
  upstreamCordoned: metrics.gaugeFromZero(
    "upstream_cordoned",
    "1 while the operator has taken a node out of use (cordon)",
    OF_NODE,
  ),
});

/** Declares the metrics of verification. `verifyOff` is set for each check that is computed. */
export const verificationMetrics = (metrics: MetricFactory) => ({
  verifyFailures: metrics.counter(
    "verify_failures_total",
    "Wrong responses of a node, which were not served, by check",
    { ...OF_NODE, check: CHECKS },
  ),
  verifySkipped: metrics.counter(
    "verify_skipped_total",
    "Checks of served responses that could not be computed, by check",
    { chain: CHAIN, check: CHECKS },
  ),
  verifyOff: metrics.gauge("verify_check_off", "1 if a check is off because it failed on all nodes from the start", {
    chain: CHAIN,
    check: CHECKS,
  }),
});
