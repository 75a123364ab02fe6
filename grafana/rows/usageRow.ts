import { INSTANCE, rate, rates, value } from "../queries.ts";
import type { Row } from "../row.ts";

const byKey = (metric: string): string => `sum by (key) (${rate(metric, INSTANCE)})`;

export const usageRow: Row = {
  title: "Usage by key",
  panels: [
    {
      title: "Units by key",
      description:
        "Price of the calls of a key in provider units a second. `usage.topKeys` have a line each. GET /usage on the ops port has the sums.",
      unit: "suffix:units/s",
      stacked: true,
      queries: [rates("key_units_total", INSTANCE, "key")],
    },
    {
      title: "Units that needed a node, by key",
      description: "Units of a key without those that the cache saved: who causes the cost.",
      unit: "suffix:units/s",
      stacked: true,
      queries: [{ expr: `${byKey("key_units_total")} - ${byKey("key_saved_units_total")}`, legend: "{{key}}" }],
    },
    {
      title: "Saved share by key",
      description: "Share of the units of a key that needed no node.",
      unit: "percentunit",
      queries: [{ expr: `${byKey("key_saved_units_total")} / ${byKey("key_units_total")}`, legend: "{{key}}" }],
    },
    {
      title: "Calls by key",
      description: "Calls a second. Each item of a batch counts.",
      unit: "reqps",
      stacked: true,
      queries: [rates("key_calls_total", INSTANCE, "key")],
    },
    {
      title: "Spent of the day's units, by key",
      description:
        "Share of `access.keys[].limit.unitsPerDay` that a key has spent at nodes since 00:00 UTC, on all replicas. At 1, its calls are refused.",
      unit: "percentunit",
      queries: [value("max", "key_budget_ratio", INSTANCE, "key")],
    },
  ],
};
