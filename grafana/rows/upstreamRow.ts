import { CHAIN, NODE, named, quantile, rate, rates, value } from "../queries.ts";
import type { Row } from "../row.ts";

const byNode = (metric: string): string => `sum by (chain, node) (${rate(metric, NODE)})`;

export const upstreamRow: Row = {
  title: "Upstream",
  panels: [
    {
      title: "Calls by node and outcome",
      description: "Calls to nodes. Any outcome other than ok names the fault.",
      unit: "cps",
      stacked: true,
      queries: [rates("upstream_requests_total", NODE, "chain", "node", "outcome")],
    },
    {
      title: "Calls by method and node",
      description: "Calls that providers bill. Each item of a batch counts.",
      unit: "cps",
      stacked: true,
      queries: [rates("upstream_calls_total", NODE, "method", "chain", "node")],
    },
    {
      title: "Share of each node",
      description: "Share of a chain's calls that a node gets.",
      unit: "percentunit",
      stacked: true,
      queries: [
        {
          expr: `${byNode("upstream_calls_total")} / on (chain) group_left sum by (chain) (${rate("upstream_calls_total", CHAIN)})`,
          legend: "{{chain}} {{node}}",
        },
      ],
    },
    {
      title: "Units by node",
      description: "Price of the calls to a node in provider units a second (docs/usage.md).",
      unit: "suffix:units/s",
      stacked: true,
      queries: [rates("upstream_units_total", NODE, "chain", "node")],
    },
    {
      title: "Spent of the day's units, by node",
      description:
        "Share of `nodes[].unitsPerDay` that a node has got since 00:00 UTC, from all replicas. At 1, it is used only if no other can answer.",
      unit: "percentunit",
      queries: [value("max", "upstream_budget_ratio", NODE, "chain", "node")],
    },
    {
      title: "Latency by node, 95th percentile",
      description: "Duration of a request to a node.",
      unit: "s",
      queries: [quantile(0.95, "upstream_seconds", NODE, "chain", "node")],
    },
    {
      title: "Retries and hedges by reason, refusals and broadcasts by node",
      description:
        "Requests that were retried, by the failure before (docs/nodes.md), and requests that were also sent to a second node. Calls refused because too many wait. Raw transactions for all nodes, by the outcome of each node.",
      unit: "reqps",
      queries: [
        named("{{chain}} retry: {{reason}}", rates("upstream_retries_total", CHAIN, "chain", "reason")),
        named("{{chain}} hedge: {{reason}}", rates("upstream_hedges_total", CHAIN, "chain", "reason")),
        named(
          "{{chain}} {{node}} transaction {{outcome}}",
          rates("upstream_broadcasts_total", NODE, "chain", "node", "outcome"),
        ),
        named("{{chain}} {{node}} refused", rates("upstream_refused_total", NODE, "chain", "node")),
      ],
    },
    {
      title: "Lag by node",
      description: "Time that a node is behind the served head. A lagging node gets only requests for old blocks.",
      unit: "s",
      queries: [value("max", "upstream_lag_seconds", NODE, "chain", "node")],
    },
    {
      title: "Nodes with a lost WebSocket",
      description: "1 while the WebSocket of a node is lost, so that its heads are polled.",
      unit: "none",
      queries: [value("max", "upstream_heads_polled", NODE, "chain", "node")],
    },
    {
      title: "Nodes without requests",
      description: "1 while a node's breaker is open, or while it is suspended for a wrong response or another chain.",
      unit: "none",
      queries: [
        named("{{chain}} {{node}} breaker", value("max", "upstream_breaker_open", NODE, "chain", "node")),
        named("{{chain}} {{node}} hangs", value("max", "upstream_hung", NODE, "chain", "node")),
        named("{{chain}} {{node}} cordoned", value("max", "upstream_cordoned", NODE, "chain", "node")),
        named("{{chain}} {{node}} rejects requests", value("max", "upstream_rejecting", NODE, "chain", "node")),
        named("{{chain}} {{node}} suspended", value("max", "upstream_suspended", NODE, "chain", "node")),
        named("{{chain}} {{node}} another chain", value("max", "upstream_wrong_chain", NODE, "chain", "node")),
      ],
    },
    {
      title: "Nodes with a fault in the last five minutes",
      description:
        "1 if a node had a fault of this outcome in the last five minutes. Errors of requests are no faults.",
      unit: "none",
      queries: [
        {
          expr: `time() - max by (chain, node, outcome) (forebay_upstream_last_error_timestamp_seconds{${NODE}}) < bool 300`,
          legend: "{{chain}} {{node}} {{outcome}}",
        },
      ],
    },
    {
      title: "Wrong responses by node and check",
      description: "Responses that failed verification and were not served. Check the node after the first one.",
      unit: "ops",
      queries: [rates("verify_failures_total", NODE, "chain", "node", "check")],
    },
    {
      title: "Responses that could not be verified",
      description: "Checks that could not be computed, and 1 for each check that is switched off on a chain.",
      unit: "short",
      queries: [
        rates("verify_skipped_total", CHAIN, "chain", "check"),
        named("{{chain}} {{check}} off", value("max", "verify_check_off", CHAIN, "chain", "check")),
      ],
    },
  ],
};
