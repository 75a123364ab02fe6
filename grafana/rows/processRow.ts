import { INSTANCE, value, WINDOW } from "../queries.ts";
import type { Row } from "../row.ts";

export const processRow: Row = {
  title: "Process",
  panels: [
    {
      title: "Event loop delay",
      description: "99th percentile since the last scrape. Above 50 ms, a computation blocks the event loop.",
      unit: "s",
      queries: [value("max", "event_loop_delay_seconds", INSTANCE, "instance")],
    },
    {
      title: "Memory",
      description: "Resident memory of each process.",
      unit: "bytes",
      queries: [value("max", "resident_memory_bytes", INSTANCE, "instance")],
    },
    {
      title: "Memory budget",
      description:
        "Bytes that requests hold, by kind. Above half of `server.memoryBudgetBytes`, several clients hold much.",
      unit: "bytes",
      queries: [value("max", "memory_budget_used_bytes", INSTANCE, "kind")],
    },
    {
      title: "Refused without memory",
      description: "Work refused because the memory budget, or the client's share of it, has no room.",
      unit: "short",
      queries: [
        {
          expr: `sum by (kind) (increase(forebay_memory_budget_refused_total{${INSTANCE}}${WINDOW}))`,
          legend: "{{kind}}",
        },
      ],
    },
    {
      title: "Reloads",
      description: "Configuration reloads by outcome. After a rejected reload, the old configuration stays active.",
      unit: "short",
      queries: [
        {
          expr: `sum by (outcome) (increase(forebay_config_reloads_total{${INSTANCE}}${WINDOW}))`,
          legend: "{{outcome}}",
        },
      ],
    },
  ],
};
