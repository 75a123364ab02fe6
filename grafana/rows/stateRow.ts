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
  ],
};
