import { CHAIN, NODE, named, quantile, rates, value } from "../queries.ts";
import type { Row } from "../row.ts";

export const upstreamRow: Row = {
  title: "Upstream",
  panels: [
    {
      title: "Requests by node and outcome",
      description: "HTTP requests to nodes. What is not ok names the node's fault.",
      unit: "reqps",
      stacked: true,
      queries: [rates("upstream_requests_total", NODE, "node", "outcome")],
    },
    {
      title: "Calls by method",
      description: "What providers bill: batch items count singly.",
      unit: "cps",
      stacked: true,
      queries: [rates("upstream_calls_total", NODE, "method")],
    },
    {
      title: "Latency by node, 95th percentile",
      description: "Duration of a request to a node.",
      unit: "s",
      queries: [quantile(0.95, "upstream_seconds", NODE, "node")],
    },
    {
      title: "Retries and hedges",
      description: "Requests sent again, and requests sent a second time before the first answered.",
      unit: "reqps",
      queries: [
        named("{{chain}} retries", rates("upstream_retries_total", CHAIN, "chain")),
        named("{{chain}} hedges", rates("upstream_hedges_total", CHAIN, "chain")),
      ],
    },
    {
      title: "Lag by node",
      description: "Blocks that a node is behind the served head. A node that lags is asked for old blocks only.",
      unit: "short",
      queries: [value("max", "upstream_lag_blocks", NODE, "chain", "node")],
    },
    {
      title: "Nodes that are not asked",
      description: "1 while a node's breaker is open, or while it is suspended: wrong answers, or another chain.",
      unit: "none",
      queries: [
        named("{{chain}} {{node}} breaker", value("max", "upstream_breaker_open", NODE, "chain", "node")),
        named("{{chain}} {{node}} suspended", value("max", "upstream_suspended", NODE, "chain", "node")),
        named("{{chain}} {{node}} another chain", value("max", "upstream_wrong_chain", NODE, "chain", "node")),
      ],
    },
    {
      title: "Rejected heads by node",
      description:
        "Newest blocks that did not link to the served chain and that nothing confirmed. They are not served.",
      unit: "short",
      queries: [rates("upstream_rejected_heads_total", NODE, "chain", "node")],
    },
    {
      title: "Wrong answers by node and check",
      description: "Answers that failed verification and were not served. Any of them is worth a look at the node.",
      unit: "ops",
      queries: [rates("verify_failures_total", NODE, "node", "check")],
    },
    {
      title: "Answers that could not be verified",
      description: "Checks that could not be computed, and 1 for each check that is off on a chain.",
      unit: "short",
      queries: [
        rates("verify_skipped_total", CHAIN, "chain", "check"),
        named("{{chain}} {{check}} off", value("max", "verify_check_off", CHAIN, "chain", "check")),
      ],
    },
  ],
};
