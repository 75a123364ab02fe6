import { CHAIN, type MetricFactory, SECONDS } from "./metricFactory.ts";

const ORIGINS = ["feed", "accessList", "trace"] as const;
/** `shared`: another replica has read it. */
const OUTCOMES = [
  "read",
  "shared",
  "unsupported",
  "late",
  "tooLarge",
  "incomplete",
  "unlisted",
  "mismatch",
  "error",
] as const;
/** `refused`: the write set does not give the state root. `missing`: the witness lacks a node. */
const PROOF_RESULTS = [
  "proven",
  "refused",
  "missing",
  "malformed",
  "unsupported",
  "late",
  "tooLarge",
  "error",
] as const;
const METHODS = ["eth_getBalance", "eth_getTransactionCount", "eth_getStorageAt", "eth_getCode"] as const;
/** Why all known values were dropped. */
const DROPS = ["noWriteSet", "gap", "fork", "nodeChanged", "difference", "fault"] as const;
export type DropReason = (typeof DROPS)[number];
const ANSWER_METHODS = ["eth_call", "eth_estimateGas"] as const;
const REFUSALS = ["mismatch", "failed", "gas", "defaults", "unknown", "forwarded", "budget", "late"] as const;

/** Declares the metrics of state values that are followed from block to block. */
export const stateMetrics = (metrics: MetricFactory) => ({
  stateFollowing: metrics.gaugeFromZero("state_following", "1 while write sets of new blocks are read", {
    chain: CHAIN,
  }),
  stateUnchecked: metrics.gaugeFromZero(
    "state_unchecked",
    "1 while known values wait for their first check, and answer no read",
    { chain: CHAIN },
  ),
  stateWriteSets: metrics.counter("state_write_sets_total", "Write sets of blocks by source and outcome", {
    chain: CHAIN,
    source: ORIGINS,
    outcome: OUTCOMES,
  }),
  stateProofs: metrics.counter(
    "state_proofs_total",
    "Proofs of write sets by execution witnesses, by source and result",
    {
      chain: CHAIN,
      source: ORIGINS,
      result: PROOF_RESULTS,
    },
  ),
  stateWriteSetSeconds: metrics.histogram(
    "state_write_set_seconds",
    "Time from a block's head until its write set was applied",
    SECONDS,
    { chain: CHAIN },
  ),
  stateLookups: metrics.counter("state_lookups_total", "Reads and calls by method and outcome; a hit needed no node", {
    chain: CHAIN,
    method: [...METHODS, ...ANSWER_METHODS],
    outcome: ["hit", "miss"],
  }),
  stateAnswers: metrics.counter(
    "state_answers_total",
    "Answers to calls by event: learned, valid at a later block, ended by a write, executed again, compared, or why one was not learned",
    {
      chain: CHAIN,
      method: ANSWER_METHODS,
      event: ["learned", "reused", "invalidated", "recomputed", "sampled", "differed", ...REFUSALS],
    },
  ),
  stateWaits: metrics.counter("state_waits_total", "Reads that waited for a write set, by result", {
    chain: CHAIN,
    result: ["hit", "unknown", "late"],
  }),
  stateDrops: metrics.counter("state_drops_total", "Times at which all known state values were dropped, by reason", {
    chain: CHAIN,
    reason: DROPS,
  }),
  stateValues: metrics.gaugeFromZero("state_values", "Known state values, those of older blocks included", {
    chain: CHAIN,
  }),
  stateBytes: metrics.gaugeFromZero("state_bytes", "Bytes of known state values and codes", { chain: CHAIN }),
});

const COMPARISONS = ["check", "sample"] as const;
/** `read`: a node's response to a client. */
const DIFFERENCES = [...COMPARISONS, "read", "call"] as const;

/** Declares the metrics of the costs and savings of following state, in provider units, and of its comparison with nodes. */
export const stateUnitMetrics = (metrics: MetricFactory) => ({
  stateUnitsSpent: metrics.counter("state_units_spent_total", "Provider units spent to follow state, by purpose", {
    chain: CHAIN,
    purpose: ["writeSets", "learning", "proofs", "check", "sample"],
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
    "Known state values that were wrong, and proven values and results of calls that a node contradicted, by how that was found",
    {
      chain: CHAIN,
      kind: DIFFERENCES,
      proof: ["proven", "none"],
    },
  ),
  stateDisagreements: metrics.counter(
    "state_disagreements_total",
    "State values on which two origins of a chain disagree, and no third one decides",
    { chain: CHAIN },
  ),
});
