import { COUNTS, SECONDS } from "./buckets.ts";
import { CHAIN, type MetricFactory } from "./metricFactory.ts";

const KINDS = ["simulate", "call", "estimateGas", "createAccessList"] as const;

/** Declares the metrics of execution in worker threads. */
export const simulationMetrics = (metrics: MetricFactory) => ({
  simulateRuns: metrics.counter("simulate_runs_total", "Runs in a worker by kind and outcome", {
    chain: CHAIN,
    kind: KINDS,
    outcome: ["ok", "error", "forwarded"],
  }),
  simulateRounds: metrics.histogram("simulate_rounds", "Rounds of fetching that a run needed", COUNTS, {
    chain: CHAIN,
  }),
  simulateFetched: metrics.counter("simulate_fetched_total", "State values fetched from nodes", { chain: CHAIN }),
  simulateKnown: metrics.counter("simulate_known_total", "State values that executions took from known state", {
    chain: CHAIN,
  }),
  simulateSeconds: metrics.histogram("simulate_seconds", "Duration of a run", SECONDS, { chain: CHAIN, kind: KINDS }),
  enginesCompared: metrics.counter("simulate_compared_total", "Runs executed on both engines by outcome", {
    chain: CHAIN,
    outcome: ["same", "different", "skipped", "failed"],
  }),
  deadlineHits: metrics.counter("simulate_deadline_total", "Runs ended by their deadline", { chain: CHAIN }),
  stateReadLimitHits: metrics.counter(
    "simulate_state_read_limit_total",
    "Requests that ended because they read too many state values",
    { chain: CHAIN },
  ),
  rulesUnknown: metrics.gauge("rules_unknown", "1 while the head's rules are not known: nodes execute", {
    chain: CHAIN,
  }),
  workers: metrics.level("workers", "Worker threads alive, of all chains; they start on first use"),
  workersMax: metrics.gauge("workers_max", "Maximum of runs of this chain in worker threads", { chain: CHAIN }),
  workersBusy: metrics.gauge("workers_busy", "Runs of this chain in worker threads", { chain: CHAIN }),
});
