import type { TestContext } from "node:test";
import { RedisStore } from "../../src/cache/redisStore.ts";
import type { RunScript } from "../../src/core/sharedValues.ts";
import type { FilterStore } from "../../src/subscriptions/filterStore.ts";
import { SharedFilters } from "../../src/subscriptions/sharedFilters.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { until } from "../support/clients/until.ts";
import { startRedis } from "../support/servers/redis.ts";
import { MAX_BYTES } from "./filterReplica.ts";

export interface RedisFilterOptions {
  readonly maxPerClient?: number | undefined;
  readonly maxBytesPerClient?: number | undefined;
  /** Replaces the function by which the store runs scripts in Redis. */
  readonly wrap?: (run: RunScript) => RunScript;
}

/** Starts Redis and a store of filters in it. Resolves when the store is connected. */
export const startRedisFilters = async (
  t: TestContext,
  { maxPerClient = 100, maxBytesPerClient = MAX_BYTES, wrap = (run) => run }: RedisFilterOptions = {},
): Promise<FilterStore> => {
  const { url } = await startRedis(t);
  const redis = new RedisStore({ url, timeoutMs: 1_000, telemetry: createTelemetry({ level: "silent" }) });
  t.after(() => redis.close());
  const store = new SharedFilters({ maxPerClient, maxBytesPerClient, run: wrap(redis.run) });
  await until(
    () =>
      store.read("0x").then(
        () => true,
        () => false,
      ),
    "Redis is connected",
  );
  return store;
};
