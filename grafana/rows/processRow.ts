import { INSTANCE, value, WINDOW } from "../queries.ts";
import type { Row } from "../row.ts";

export const processRow: Row = {
  title: "Process",
  panels: [
    {
      title: "Event loop delay",
      description: "99th percentile since the last scrape. Above 50 ms something computes where it should not.",
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
      title: "Reloads",
      description: "Configuration reloads by outcome. One that is refused leaves the old configuration in force.",
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
