import { CHAIN, INSTANCE, named, quantile, rates, value } from "../queries.ts";
import type { Row } from "../row.ts";

export const simulationRow: Row = {
  title: "Simulation",
  panels: [
    {
      title: "Runs by kind and outcome",
      description: "Runs in a worker, and runs that ended at their deadline.",
      unit: "ops",
      queries: [
        rates("simulate_runs_total", CHAIN, "kind", "outcome"),
        named("deadline", rates("simulate_deadline_total", CHAIN)),
        named("state read limit", rates("simulate_state_read_limit_total", CHAIN)),
      ],
    },
    {
      title: "Duration, 95th percentile",
      description: "By kind of run, including the wait for state.",
      unit: "s",
      queries: [quantile(0.95, "simulate_seconds", CHAIN, "kind")],
    },
    {
      title: "Fetching state",
      description: "Rounds that a run needed, and values from known state a second.",
      unit: "short",
      queries: [
        named("rounds p95", quantile(0.95, "simulate_rounds", CHAIN)),
        named("known values a second", rates("simulate_known_total", CHAIN)),
      ],
    },
    {
      title: "Rules unknown",
      description: "1: a fork is active that this version cannot execute, so that nodes execute calls.",
      unit: "short",
      queries: [value("max", "rules_unknown", CHAIN, "chain")],
    },
    {
      title: "Workers",
      description:
        "Threads of an instance, and runs of a chain: maximum and now. If all threads are busy, runs wait, then clients get 503.",
      unit: "short",
      queries: [
        named("{{chain}} maximum", value("sum", "workers_max", CHAIN, "chain")),
        named("{{instance}} alive", value("sum", "workers", INSTANCE, "instance")),
        named("{{chain}} busy", value("sum", "workers_busy", CHAIN, "chain")),
      ],
    },
  ],
};
