import { CHAIN, named, quantile, rates, value } from "../queries.ts";
import type { Row } from "../row.ts";

export const pendingRow: Row = {
  title: "Pending",
  panels: [
    {
      title: "Feed messages by decision",
      description: "next and firstOfNextBlock extend the view. Other decisions name duplicates, gaps and faults.",
      unit: "cps",
      queries: [rates("feed_messages_total", CHAIN, "decision")],
    },
    {
      title: "Age of the feed",
      description:
        "Time since the last valid message. The feed is stale after three block times, and after 2 s or more.",
      unit: "s",
      queries: [value("max", "feed_age_seconds", CHAIN, "chain", "instance")],
    },
    {
      title: "Feed connections",
      description: "Open connections; gaps and reconnections a second.",
      unit: "short",
      queries: [
        named("{{chain}} open", value("min", "feed_connected", CHAIN, "chain")),
        named("{{chain}} gaps", rates("feed_gaps_total", CHAIN, "chain")),
        named("{{chain}} reconnects", rates("feed_reconnects_total", CHAIN, "chain")),
      ],
    },
    {
      title: "Answers at pending by mode",
      description:
        "live and native responses are from the view. In the modes stale, unverified and node, a node answers state reads.",
      unit: "reqps",
      stacked: true,
      queries: [rates("pending_answers_total", CHAIN, "mode")],
    },
    {
      title: "Mismatches, unverified views and dropped transactions",
      description:
        "Computed values that differ from the feed or the block, changes to unverified views, transactions that were not sealed.",
      unit: "ops",
      queries: [
        rates("pending_mismatches_total", CHAIN, "what"),
        named("unverified: {{cause}}", rates("pending_unverified_total", CHAIN, "cause")),
        named("dropped", rates("pending_dropped_total", CHAIN)),
      ],
    },
    {
      title: "Execution time of a flashblock",
      description: "A message that takes longer than a block time is published unverified.",
      unit: "s",
      queries: [0.5, 0.99].map((share) => quantile(share, "pending_execute_seconds", CHAIN)),
    },
  ],
};
