import { CHAIN, type MetricFactory } from "./metricFactory.ts";

/** Declares the metrics of what following state costs and saves, in provider units. */
export const stateUnitMetrics = (metrics: MetricFactory) => ({
  stateUnitsSpent: metrics.counter("state_units_spent_total", "Provider units spent to follow state, by purpose", {
    chain: CHAIN,
    purpose: ["writeSets", "learning", "audit", "sample"],
  }),
  stateUnitsSaved: metrics.counter("state_units_saved_total", "Provider units of reads that state answered", {
    chain: CHAIN,
  }),
});
