import { RETENTION, type RetentionClass } from "../core/retention.ts";
import { CHAIN, type MetricFactory, SECONDS } from "./metricFactory.ts";

const isCached = (name: string): name is RetentionClass => RETENTION[name as RetentionClass].isCached;
/** The retention classes whose responses are cached. */
const CLASSES = Object.keys(RETENTION).filter(isCached);
const LOOKUPS = ["memory", "disk", "redis", "absent", "miss", "bypass"] as const;

/** Why a Redis operation failed; a metric label. `corrupt`: the value that was read is not a valid entry. */
const REDIS_FAILURES = [
  "timeout",
  "disconnected",
  "overloaded",
  "paused",
  "readonly",
  "full",
  "loading",
  "cluster",
  "refused",
  "other",
  "corrupt",
] as const;

export type RedisFailure = (typeof REDIS_FAILURES)[number];

/** Why an operation on the data folder failed; a metric label. `corrupt`: the database, or a value that was read. */
const DISK_FAILURES = ["timeout", "overloaded", "corrupt", "full", "readonly", "removed", "other"] as const;

export type DiskFailure = (typeof DISK_FAILURES)[number];

/** Declares the metrics of the cache, in memory, on disk and in Redis. */
export const cacheMetrics = (metrics: MetricFactory) => {
  const redis = metrics.with("redis");
  const disk = metrics.with("disk");
  const memoryCaches = new Set<{ readonly bytes: number }>();
  return {
    /** The caches whose sizes are read before each scrape. */
    memoryCaches,
    cacheLookups: metrics.counter("cache_lookups_total", "Cache look-ups by outcome", {
      chain: CHAIN,
      class: CLASSES,
      outcome: LOOKUPS,
    }),
    cacheBytes: metrics.level("cache_bytes", "Bytes in the memory cache", (gauge) =>
      gauge.set([...memoryCaches].reduce((total, { bytes }) => total + bytes, 0)),
    ),
    cacheEvictions: metrics.counter("cache_evictions_total", "Entries evicted from memory", {}),
    diskUp: disk.absentLevel("disk_up", "1 while the data folder can be used; absent without one"),
    diskBytes: disk.absentLevel("disk_bytes", "Bytes of the data folder's files"),
    diskEntries: disk.absentLevel("disk_entries", "Entries in the data folder"),
    diskQueueBytes: disk.absentLevel("disk_queue_bytes", "Bytes that wait to be written to the data folder"),
    diskErrors: disk.counter("disk_errors_total", "Operations on the data folder that failed, by reason", {
      reason: DISK_FAILURES,
    }),
    // An alert takes 0 for a fault.
    redisUp: redis.absentLevel(
      "redis_up",
      "1 while Redis answers within its deadline and accepts writes; absent without Redis",
    ),
    redisErrors: redis.counter("redis_errors_total", "Redis operations that failed, by reason", {
      reason: REDIS_FAILURES,
    }),
    redisSeconds: redis.histogram("redis_seconds", "Duration of a Redis operation", SECONDS, {
      operation: ["get", "set", "script"],
    }),
  };
};
