import { CHAIN, named, rates } from "../queries.ts";
import type { Row } from "../row.ts";

export const stateRow: Row = {
  title: "State",
  panels: [
    {
      title: "Units saved and spent",
      description:
        "Provider units a second: of reads that state answered, and of write sets, learning, audits and samples.",
      unit: "short",
      queries: [
        named("saved", rates("state_units_saved_total", CHAIN)),
        named("{{purpose}}", rates("state_units_spent_total", CHAIN, "purpose")),
      ],
    },
    {
      title: "Compared with a node",
      description:
        "Known values that audits and samples compared a second, and differences. A difference drops all values.",
      unit: "short",
      queries: [
        named("{{kind}}", rates("state_compared_total", CHAIN, "kind")),
        named("{{kind}}: different", rates("state_differences_total", CHAIN, "kind")),
      ],
    },
  ],
};
