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
      description: "Share of look-ups that no node was asked for. Look-ups that were told to bypass are left out.",
      unit: "percentunit",
      queries: [
        { expr: hitRatio("class"), legend: "{{class}}" },
        { expr: hitRatio("job"), legend: "all" },
      ],
    },
    {
      title: "Look-ups by outcome",
      description: "memory and redis are hits, absent is a null that is still true, miss asked a node.",
      unit: "ops",
      stacked: true,
      queries: [rates("cache_lookups_total", CHAIN, "outcome")],
    },
    {
      title: "Kept and evicted",
      description: "Answers kept by class, and entries dropped to make room: steady evictions call for more memory.",
      unit: "ops",
      queries: [
        rates("cache_stored_total", CHAIN, "class"),
        named("evicted", rates("cache_evictions_total", INSTANCE)),
      ],
    },
    {
      title: "Memory cache",
      description: "Bytes held by each process.",
      unit: "bytes",
      queries: [value("sum", "cache_bytes", INSTANCE, "instance")],
    },
    {
      title: "Entries",
      description: "Entries in the memory cache of each process.",
      unit: "short",
      queries: [value("sum", "cache_entries", INSTANCE, "instance")],
    },
    {
      title: "Age at hit",
      description:
        "How old an entry was when it was served: short ages come from clients at the head, long ones from history.",
      unit: "s",
      queries: [0.5, 0.9].map((share) => quantile(share, "cache_hit_age_seconds", INSTANCE)),
    },
    {
      title: "Redis",
      description: "1 while Redis answers in time. Errors by reason: each was a miss, none failed a request.",
      unit: "short",
      queries: [
        named("{{instance}} up", value("min", "redis_up", INSTANCE, "instance")),
        rates("redis_errors_total", INSTANCE, "reason"),
      ],
    },
    {
      title: "Redis latency, 99th percentile",
      description: "By operation. It ends at the deadline of Redis (50 ms unless set).",
      unit: "s",
      queries: [quantile(0.99, "redis_seconds", INSTANCE, "operation")],
    },
  ],
};
