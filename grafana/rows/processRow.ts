import { INSTANCE, named, quantile, rates, value, WINDOW } from "../queries.ts";
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
    {
      title: "Serving processes",
      description: "Only with server.processes above 1: those that accept connections, and those that were replaced.",
      unit: "short",
      queries: [
        value("min", "processes", INSTANCE, "instance"),
        {
          expr: `sum by (instance) (increase(forebay_process_restarts_total{${INSTANCE}}${WINDOW}))`,
          legend: "{{instance}} replaced",
        },
      ],
    },
    {
      title: "Responses by serving process",
      description: "Equal parts are normal. A process with few responses hangs, or has few connections.",
      unit: "reqps",
      queries: [rates("process_responses_total", INSTANCE, "instance", "process")],
    },
    {
      title: "New view in all processes",
      description:
        "Time until all serving processes have a new view. A missed view means that a process did not respond.",
      unit: "s",
      queries: [
        named("p50", quantile(0.5, "view_round_seconds", INSTANCE)),
        named("p99", quantile(0.99, "view_round_seconds", INSTANCE)),
      ],
    },
    {
      title: "Missed views",
      description: "A serving process did not acknowledge a view in time. It answers nothing until it has caught up.",
      unit: "short",
      queries: [
        {
          expr: `sum by (instance) (increase(forebay_views_missed_total{${INSTANCE}}${WINDOW}))`,
          legend: "{{instance}}",
        },
      ],
    },
  ],
};
