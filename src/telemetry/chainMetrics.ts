import type { PendingMode } from "../core/view.ts";
import { CHAIN, COUNTS, type MetricFactory, SECONDS } from "./metricFactory.ts";

/** Declares the metrics of log queries. */
export const logMetrics = (metrics: MetricFactory) => ({
  logSpans: metrics.counter("log_spans_total", "Block ranges requested from nodes, by outcome", {
    chain: CHAIN,
    outcome: { first: ["ok", "tooLarge"] },
  }),
});

/** Declares the metrics of the served heads. */
export const headMetrics = (metrics: MetricFactory) => ({
  chainServing: metrics.gauge("chain_serving", "1 while the chain is known and one of its nodes can take requests", {
    chain: CHAIN,
  }),
  head: metrics.gauge("head", "Served head by tag", { chain: CHAIN, tag: ["latest", "safe", "finalized"] }),
  headAgeSeconds: metrics.gauge("head_age_seconds", "Age of the served head by its own time", { chain: CHAIN }),
  headsContradicted: metrics.gaugeFromZero(
    "heads_contradicted",
    "1 while origins have different newest blocks, and none has a majority",
    { chain: CHAIN },
  ),
  headResponses: metrics.counter("head_responses_total", "Responses over HTTP by x-forebay-head", {
    chain: CHAIN,
    head: ["agreed", "linked"],
  }),
  minViews: metrics.counter("min_view_requests_total", "Requests with x-forebay-min-view by outcome", {
    chain: CHAIN,
    outcome: ["current", "waited", "behind", "reorged"],
  }),
  reorgDepth: metrics.histogram("reorg_depth_blocks", "Blocks replaced by one reorganisation", COUNTS, {
    chain: CHAIN,
  }),
});

const RUNS = ["simulate", "call", "estimateGas", "createAccessList"] as const;

/** Declares the metrics of execution in worker threads. */
export const simulationMetrics = (metrics: MetricFactory) => ({
  simulateRuns: metrics.counter("simulate_runs_total", "Runs in a worker by kind and outcome", {
    chain: CHAIN,
    kind: RUNS,
    outcome: ["ok", "error", "forwarded"],
  }),
  simulateRounds: metrics.histogram("simulate_rounds", "Rounds of fetching that a run needed", COUNTS, {
    chain: CHAIN,
  }),
  simulateKnown: metrics.counter("simulate_known_total", "State values that executions took from known state", {
    chain: CHAIN,
  }),
  simulateSeconds: metrics.histogram("simulate_seconds", "Duration of a run", SECONDS, { chain: CHAIN, kind: RUNS }),
  deadlineHits: metrics.counter("simulate_deadline_total", "Runs ended by their deadline", { chain: CHAIN }),
  stateReadLimitHits: metrics.counter(
    "simulate_state_read_limit_total",
    "Requests that ended because they read too many state values",
    { chain: CHAIN },
  ),
  rulesUnknown: metrics.gauge("rules_unknown", "1 while the head's rules are not known: nodes execute", {
    chain: CHAIN,
  }),
  workers: metrics.level(
    "workers",
    "Threads alive that execute; those of clients start on first use, that of a feed at once",
  ),
  workersMax: metrics.gauge("workers_max", "Maximum of runs of this chain in worker threads", { chain: CHAIN }),
  workersBusy: metrics.gauge("workers_busy", "Runs of this chain in worker threads", { chain: CHAIN }),
});

const DECISIONS = [
  "first",
  "next",
  "firstOfNextBlock",
  "replacement",
  "gap",
  "waiting",
  "wrongParent",
  "early",
  "unconfirmed",
  "undecided",
  "duplicate",
  "conflict",
  "wrongHash",
  "old",
  "tooFar",
  "tooLarge",
  "malformed",
  "payloadEnd",
] as const;

const UNVERIFIED = [
  "gas",
  "bloom",
  "receiptsRoot",
  "undecodable",
  "foreignChain",
  "unexecutable",
  "rejected",
  "failed",
  "unreadable",
  "tooMuchState",
  "late",
] as const;

const MODES = [
  "live",
  "unverified",
  "degraded",
  "stale",
  "native",
  "node",
  "none",
] as const satisfies readonly PendingMode[];

/** Declares the metrics of the sequencer's feed. */
export const feedMetrics = (metrics: MetricFactory) => {
  const feed = metrics.with("feed");
  return {
    feedMessages: feed.counter("feed_messages_total", "Messages of the sequencer's feed by decision", {
      chain: CHAIN,
      decision: DECISIONS,
    }),
    feedAgeSeconds: feed.gauge(
      "feed_age_seconds",
      "Time since the last valid message, or since the start; absent without a feed",
      { chain: CHAIN },
    ),
    feedConnected: feed.gauge("feed_connected", "Feed connections that are open", { chain: CHAIN }),
    feedReconnects: feed.counter("feed_reconnects_total", "Feed reconnections", { chain: CHAIN }),
    feedGaps: feed.counter("feed_gaps_total", "Gaps in the feed", { chain: CHAIN }),
  };
};

/** Declares the metrics of pending blocks. Only responses at `pending` exist without a feed. */
export const pendingMetrics = (metrics: MetricFactory) => {
  const feed = metrics.with("feed");
  return {
    pendingMismatches: feed.counter(
      "pending_mismatches_total",
      "Computed values that differ from the feed or the block, by value",
      {
        chain: CHAIN,
        what: [...UNVERIFIED, "transactions"],
      },
    ),
    pendingUnverified: feed.counter(
      "pending_unverified_total",
      "Changes to an unverified view, whose state the node reads, by cause",
      { chain: CHAIN, cause: UNVERIFIED },
    ),
    pendingDropped: feed.counter(
      "pending_dropped_total",
      "Transactions of shown pending blocks that the sealed block lacks",
      {
        chain: CHAIN,
      },
    ),
    pendingAnswers: metrics.counter("pending_answers_total", "Responses at pending by mode", {
      chain: CHAIN,
      mode: MODES,
    }),
    pendingExecuteSeconds: feed.histogram("pending_execute_seconds", "Executing one flashblock", SECONDS, {
      chain: CHAIN,
    }),
  };
};
