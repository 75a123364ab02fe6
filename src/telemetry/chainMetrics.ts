import { COUNTS } from "./buckets.ts";
import { CHAIN, type MetricFactory } from "./metricFactory.ts";

const RANGE_BLOCKS = [1, 10, 100, 1000, 2000, 10_000, 100_000, 1_000_000];

/** Declares the metrics of log queries. */
export const logMetrics = (metrics: MetricFactory) => ({
  logSpans: metrics.counter("log_spans_total", "Block ranges requested from nodes, by outcome", {
    chain: CHAIN,
    outcome: { first: ["ok", "tooLarge"] },
  }),
  logSplits: metrics.counter("log_splits_total", "Block ranges halved, by dimension", {
    chain: CHAIN,
    dimension: ["blocks", "addresses", "topics"],
  }),
  logSegments: metrics.counter("log_segments_total", "Segments by source", {
    chain: CHAIN,
    source: ["cache", "node"],
  }),
  logRangeBlocks: metrics.histogram("log_range_blocks", "Blocks of one query", RANGE_BLOCKS, {
    chain: CHAIN,
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
    "max",
  ),
  reorgs: metrics.counter("reorgs_total", "Reorganisations", { chain: CHAIN }),
  reorgDepth: metrics.histogram("reorg_depth_blocks", "Blocks replaced by one reorganisation", COUNTS, {
    chain: CHAIN,
  }),
});
