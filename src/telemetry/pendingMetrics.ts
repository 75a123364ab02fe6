import type { PendingMode } from "../core/view.ts";
import { CHAIN, type MetricFactory, SECONDS } from "./metricFactory.ts";

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
  "notJson",
  "notAMessage",
  "badBase",
  "badDiff",
  "undecodable",
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
    feedLead: feed.gauge("feed_lead_blocks", "Pending block's number minus the served head", { chain: CHAIN }),
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
    pendingDropped: feed.counter("pending_dropped_total", "Pre-confirmed transactions that were not sealed", {
      chain: CHAIN,
    }),
    pendingAnswers: metrics.counter("pending_answers_total", "Responses at pending by mode", {
      chain: CHAIN,
      mode: MODES,
    }),
    pendingExecuteSeconds: feed.histogram("pending_execute_seconds", "Executing one flashblock", SECONDS, {
      chain: CHAIN,
    }),
  };
};
