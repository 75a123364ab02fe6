import { CHAIN, rates } from "../queries.ts";
import type { Row } from "../row.ts";

export const logsRow: Row = {
  title: "Logs",
  panels: [
    {
      title: "Spans",
      description: "Ranges requested from nodes by outcome. tooLarge: the range was halved.",
      unit: "ops",
      queries: [rates("log_spans_total", CHAIN, "outcome")],
    },
  ],
};
