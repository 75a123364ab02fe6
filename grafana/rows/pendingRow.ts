import { CHAIN, named, quantile, rates, value } from "../queries.ts";
import type { Row } from "../row.ts";

export const pendingRow: Row = {
  title: "Pending",
  panels: [
    {
      title: "Feed messages by decision",
      description: "next and first are good; gaps, duplicates and faults are told by name.",
      unit: "cps",
      queries: [rates("feed_messages_total", CHAIN, "decision")],
    },
    {
      title: "Age of the feed",
      description: "Time since the last good message. Past the larger of three block times and 2 s it is stale.",
      unit: "s",
      queries: [value("max", "feed_age_seconds", CHAIN, "chain", "instance")],
    },
    {
      title: "Feed connections",
      description: "Open connections, and gaps and connections made again a second.",
      unit: "short",
      queries: [
        named("{{chain}} open", value("min", "feed_connected", CHAIN, "chain")),
        named("{{chain}} gaps", rates("feed_gaps_total", CHAIN, "chain")),
        named("{{chain}} reconnects", rates("feed_reconnects_total", CHAIN, "chain")),
      ],
    },
    {
      title: "Lead over the sealed head",
      description: "Pending block's number minus the served head: 1 in good order.",
      unit: "short",
      queries: [value("max", "feed_lead_blocks", CHAIN, "chain")],
    },
    {
      title: "Answers at pending by mode",
      description: "live and native are good. stale or unverified answers come from a node.",
      unit: "reqps",
      stacked: true,
      queries: [rates("pending_answers_total", CHAIN, "mode")],
    },
    {
      title: "Mismatches, unverified views and vanished transactions",
      description:
        "What was computed here and differed, turns to unverified views, pre-confirmed transactions that no block holds.",
      unit: "ops",
      queries: [
        rates("pending_mismatches_total", CHAIN, "what"),
        named("unverified: {{cause}}", rates("pending_unverified_total", CHAIN, "cause")),
        named("vanished", rates("pending_vanished_total", CHAIN)),
      ],
    },
    {
      title: "Executing a flashblock",
      description: "A message that takes longer than a block time is published unverified.",
      unit: "s",
      queries: [0.5, 0.99].map((share) => quantile(share, "pending_execute_seconds", CHAIN)),
    },
  ],
};
