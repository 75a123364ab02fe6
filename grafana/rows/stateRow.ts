import { CHAIN, named, quantile, rates, value } from "../queries.ts";
import type { Row } from "../row.ts";

export const stateRow: Row = {
  title: "State",
  panels: [
    {
      title: "Units saved and spent",
      description:
        "Provider units a second: of reads that state answered, and of write sets, learning, checks and samples.",
      unit: "suffix:units/s",
      queries: [
        named("saved", rates("state_units_saved_total", CHAIN)),
        named("{{purpose}}", rates("state_units_spent_total", CHAIN, "purpose")),
      ],
    },
    {
      title: "Compared with a node",
      description:
        "Known values that checks and samples compared a second, wrong ones, also by responses to clients (read), proven ones that a node contradicts, and those on which two nodes disagree.",
      unit: "suffix:values/s",
      queries: [
        named("{{kind}}", rates("state_compared_total", CHAIN, "kind")),
        named("{{kind}}: wrong ({{proof}})", rates("state_differences_total", CHAIN, "kind", "proof")),
        named("nodes disagree", rates("state_disagreements_total", CHAIN)),
      ],
    },
    {
      title: "Reads and calls",
      description: "Reads and calls within the newest 256 blocks by method. No node was asked for a hit.",
      unit: "ops",
      stacked: true,
      queries: [rates("state_lookups_total", CHAIN, "method", "outcome")],
    },
    {
      title: "Answers to calls",
      description:
        "Learned, valid at another block, ended by a write, or the reason why one was not learned. Many of mismatch mean that the node's rules differ from forebay's.",
      unit: "ops",
      queries: [rates("state_answers_total", CHAIN, "method", "event")],
    },
    {
      title: "Write sets",
      description: "Blocks by source and outcome. Any outcome but read means that the next source was asked.",
      unit: "ops",
      stacked: true,
      queries: [rates("state_write_sets_total", CHAIN, "source", "outcome")],
    },
    {
      title: "Proofs of write sets",
      description:
        "By execution witnesses. Many of refused mean that traces leave out accounts, or that a node lies. Only state.prove: true proves write sets of feeds.",
      unit: "ops",
      stacked: true,
      queries: [rates("state_proofs_total", CHAIN, "source", "result")],
    },
    {
      title: "Waits at a new head",
      description:
        "Reads that waited for a write set. If many are late, the source is too slow: see the time of write sets.",
      unit: "ops",
      queries: [rates("state_waits_total", CHAIN, "result")],
    },
    {
      title: "Time until a write set is applied",
      description: "From the head of a block. Reads wait up to state.waitMs (100 ms by default).",
      unit: "s",
      queries: [0.5, 0.99].map((share) => quantile(share, "state_write_set_seconds", CHAIN)),
    },
    {
      title: "All values dropped",
      description: "By reason (docs/state.md). A difference means that a value was wrong, or that a node is.",
      unit: "ops",
      queries: [rates("state_drops_total", CHAIN, "reason")],
    },
    {
      title: "Known values",
      description:
        "Values in memory, 1 while new blocks are followed, and 1 while values wait for their first check and answer no read.",
      unit: "short",
      queries: [
        named("{{chain}} values", value("sum", "state_values", CHAIN, "chain")),
        named("{{chain}} follows", value("max", "state_following", CHAIN, "chain")),
        named("{{chain}} unchecked", value("max", "state_unchecked", CHAIN, "chain")),
      ],
    },
    {
      title: "Memory of known state",
      description: "Bytes of values and codes. state.cacheBytes limits them.",
      unit: "bytes",
      queries: [named("{{chain}}", value("sum", "state_bytes", CHAIN, "chain"))],
    },
  ],
};
