import { CHAIN, type MetricFactory } from "./metricFactory.ts";

const COMPARISONS = ["audit", "sample"] as const;
/** `read`: a node's response to a client. */
const DIFFERENCES = [...COMPARISONS, "read"] as const;

/** Declares the metrics of the costs and savings of following state, in provider units, and of its comparison with nodes. */
export const stateUnitMetrics = (metrics: MetricFactory) => ({
  stateUnitsSpent: metrics.counter("state_units_spent_total", "Provider units spent to follow state, by purpose", {
    chain: CHAIN,
    purpose: ["writeSets", "learning", "audit", "sample"],
  }),
  stateUnitsSaved: metrics.counter("state_units_saved_total", "Provider units of reads that state answered", {
    chain: CHAIN,
  }),
  stateCompared: metrics.counter("state_compared_total", "Known state values compared with a node", {
    chain: CHAIN,
    kind: COMPARISONS,
  }),
  stateDifferences: metrics.counter(
    "state_differences_total",
    "Known state values that were wrong, by how that was found",
    {
      chain: CHAIN,
      kind: DIFFERENCES,
    },
  ),
  stateDisagreements: metrics.counter(
    "state_disagreements_total",
    "State values on which the origins of a chain disagree, and none has a majority",
    { chain: CHAIN },
  ),
});
