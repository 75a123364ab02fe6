import { INSTANCE, named, rates, value, WINDOW } from "../queries.ts";
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
      title: "CPU",
      description: "Cores in use, all threads of a process together. The event loop itself can use one.",
      unit: "suffix:cores",
      queries: [named("{{instance}}", rates("cpu_seconds_total", INSTANCE, "instance"))],
    },
    {
      title: "Heap of the main thread",
      description: "Used heap. The process ends if it reaches the limit of Node.js.",
      unit: "bytes",
      queries: [value("max", "heap_bytes", INSTANCE, "instance")],
    },
    {
      title: "Log lines dropped",
      description: "Log lines a second that stdout did not take in time: a full disk, or a reader that has stopped.",
      unit: "short",
      queries: [rates("log_lines_dropped_total", INSTANCE, "instance")],
    },
    {
      title: "Open files",
      description: "Open files and sockets, and their limit. At the limit, no connection can be opened.",
      unit: "suffix:files",
      queries: [
        named("{{instance}} open", value("max", "open_files", INSTANCE, "instance")),
        named("{{instance}} limit", value("max", "max_open_files", INSTANCE, "instance")),
      ],
    },
    {
      title: "Builds",
      description: "Replicas by version of forebay and Node.js. More than one line: a rollout is not complete.",
      unit: "none",
      stacked: true,
      queries: [
        named("{{version}}, Node.js {{node_version}}", value("sum", "build_info", INSTANCE, "version", "node_version")),
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
