import { CHAIN, INSTANCE, named, quantile, rate, rates, value } from "../queries.ts";
import type { Row } from "../row.ts";

/** Share of the look-ups that did not miss. */
const hitRatio = (by: string): string =>
  `1 - sum by (${by}) (${rate("cache_lookups_total", `outcome="miss",${CHAIN}`)})` +
  ` / sum by (${by}) (${rate("cache_lookups_total", `outcome!="bypass",${CHAIN}`)})`;

export const cacheRow: Row = {
  title: "Cache",
  panels: [
    {
      title: "Hit ratio by class",
      description: "Share of look-ups without a request to a node. Look-ups that bypass the cache are excluded.",
      unit: "percentunit",
      queries: [
        { expr: hitRatio("class"), legend: "{{class}}" },
        { expr: hitRatio("job"), legend: "all" },
      ],
    },
    {
      title: "Look-ups by outcome",
      description: "memory, disk and redis are hits, absent is a cached null, miss is a request to a node.",
      unit: "ops",
      stacked: true,
      queries: [rates("cache_lookups_total", CHAIN, "outcome")],
    },
    {
      title: "Evicted",
      description: "Entries evicted for room. If evictions do not end, increase the memory cache.",
      unit: "ops",
      queries: [named("evicted", rates("cache_evictions_total", INSTANCE))],
    },
    {
      title: "Memory cache",
      description: "Bytes in the memory cache of each process.",
      unit: "bytes",
      queries: [value("sum", "cache_bytes", INSTANCE, "instance")],
    },
    {
      title: "Data folder",
      description:
        "1 while the data folder can be used, and its failures by reason: each one is a cache miss, and no request fails.",
      unit: "short",
      queries: [
        named("{{instance}} up", value("min", "disk_up", INSTANCE, "instance")),
        rates("disk_errors_total", INSTANCE, "reason"),
      ],
    },
    {
      title: "Data folder, bytes",
      description: "Bytes of the files, and bytes that wait to be written. cache.diskBytes limits the files.",
      unit: "bytes",
      queries: [
        named("{{instance}} files", value("sum", "disk_bytes", INSTANCE, "instance")),
        named("{{instance}} waiting", value("sum", "disk_queue_bytes", INSTANCE, "instance")),
      ],
    },
    {
      title: "Data folder, entries",
      description: "Entries in the data folder of each process. The oldest are removed for room.",
      unit: "short",
      queries: [value("sum", "disk_entries", INSTANCE, "instance")],
    },
    {
      title: "Redis",
      description: "1 while Redis answers in time. Errors by reason: each one is a cache miss, and no request fails.",
      unit: "short",
      queries: [
        named("{{instance}} up", value("min", "redis_up", INSTANCE, "instance")),
        rates("redis_errors_total", INSTANCE, "reason"),
      ],
    },
    {
      title: "Redis latency, 99th percentile",
      description: "By operation. The deadline of Redis limits it (50 ms by default).",
      unit: "s",
      queries: [quantile(0.99, "redis_seconds", INSTANCE, "operation")],
    },
  ],
};
