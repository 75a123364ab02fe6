import { CHAIN, NODE, named, quantile, rates, shares, value } from "../queries.ts";
import type { Row } from "../row.ts";

export const headsRow: Row = {
  title: "Heads",
  panels: [
    {
      title: "Served heads",
      description: "Block number by tag. Replicas may differ by one block; a larger difference must be short.",
      unit: "none",
      queries: [named("{{chain}} {{tag}}", value("max", "head", CHAIN, "chain", "tag"))],
    },
    {
      title: "Age of the head",
      description: "Seconds since the timestamp of the served head.",
      unit: "s",
      queries: [value("max", "head_age_seconds", CHAIN, "chain", "instance")],
    },
    {
      title: "Served chains",
      description: "1 while the chain is known and has a usable node. 0: /readyz on the ops port names the reason.",
      unit: "none",
      queries: [value("min", "chain_serving", CHAIN, "chain", "instance")],
    },
    {
      title: "Heads of the nodes",
      description: "Newest block that each node announced.",
      unit: "none",
      queries: [value("max", "upstream_head", NODE, "chain", "node")],
    },
    {
      title: "Disagreement on the head",
      description:
        "1 while origins have different newest blocks without a majority, and while the heads of a node are ignored.",
      unit: "none",
      queries: [
        named("{{chain}} no majority", value("max", "heads_contradicted", CHAIN, "chain")),
        named("{{chain}} {{node}} ignored", value("max", "upstream_heads_excluded", NODE, "chain", "node")),
      ],
    },
    {
      title: "Shares of agreed and linked heads",
      description:
        "Share of the responses over HTTP by x-forebay-head. With nodes of one origin, all are linked. Otherwise see Disagreement on the head.",
      unit: "percentunit",
      stacked: true,
      queries: [shares("head_responses_total", "head")],
    },
    {
      title: "Nodes without pushed heads",
      description: "1 while a node with a wsUrl is polled for heads, because its WebSocket is lost.",
      unit: "none",
      queries: [value("max", "upstream_heads_polled", NODE, "chain", "node")],
    },
    {
      title: "Reorganisations, and requests for a view by outcome",
      description:
        "Reorganisations a second, and the depth of the deepest tenth. Requests with x-forebay-min-view: the view was there, or was awaited. It stayed older, or was replaced.",
      unit: "short",
      queries: [
        rates("reorg_depth_blocks_count", CHAIN, "chain"),
        named("{{chain}} view {{outcome}}", rates("min_view_requests_total", CHAIN, "chain", "outcome")),
        named("{{chain}} depth p90", quantile(0.9, "reorg_depth_blocks", CHAIN, "chain")),
      ],
    },
  ],
};
