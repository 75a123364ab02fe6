import type { Config } from "../config/schema.ts";
import type { CheckResult } from "./checkResult.ts";

/** Where the units of a day are counted. */
const describeStore = ({ cache: { redis }, server: { dataDir } }: Pick<Config, "cache" | "server">): string => {
  if (redis !== undefined) {
    return "counted over all replicas, in Redis";
  }
  return dataDir === undefined
    ? "each replica counts alone, and from 0 after a restart (cache.redis)"
    : "each replica counts alone, in its data folder (cache.redis)";
};

/** Describes the budgets of keys. */
export const describeBudgets = (config: Config): readonly CheckResult[] => {
  const store = describeStore(config);
  return config.access.keys.flatMap(({ name, limit }): CheckResult[] =>
    limit?.unitsPerDay === undefined
      ? []
      : [{ level: "ok", subject: `key ${name}`, text: `${limit.unitsPerDay} units a day: ${store}` }],
  );
};
