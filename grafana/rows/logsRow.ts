import { CHAIN, NODE, named, quantile, rates, value } from "../queries.ts";
import type { Row } from "../row.ts";

export const logsRow: Row = {
  title: "Logs",
  panels: [
    {
      title: "Spans",
      description: "Ranges requested from nodes by outcome, and halved ranges by dimension.",
      unit: "ops",
      queries: [
        rates("log_spans_total", CHAIN, "outcome"),
        named("halved by {{dimension}}", rates("log_splits_total", CHAIN, "dimension")),
      ],
    },
    {
      title: "Segments by source",
      description: "Segments of 128 blocks by source.",
      unit: "ops",
      stacked: true,
      queries: [rates("log_segments_total", CHAIN, "source")],
    },
    {
      title: "Range of a query",
      description: "Blocks in the range of one eth_getLogs.",
      unit: "suffix:blocks",
      queries: [0.5, 0.95, 0.99].map((share) => quantile(share, "log_range_blocks", CHAIN)),
    },
    {
      title: "Learned range limit",
      description: "Blocks that a node allows in one query, learned from its errors; 0 for no limit.",
      unit: "suffix:blocks",
      queries: [value("min", "upstream_span_limit_blocks", NODE, "chain", "node")],
    },
  ],
};
