import { configuredBudgets } from "../app/configuredBudgets.ts";
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

/** Describes the budgets of keys and nodes. */
export const describeBudgets = (config: Config): readonly CheckResult[] => {
  const store = describeStore(config);
  const lonely = new Set(config.chains.flatMap(({ name, nodes }) => (nodes.length === 1 ? [name] : [])));
  return configuredBudgets(config).map(({ of, unitsPerDay }): CheckResult => {
    const subject = "key" in of ? `key ${of.key}` : `${of.chain}/${of.node} units`;
    return "chain" in of && lonely.has(of.chain)
      ? { subject, level: "warn", text: "`unitsPerDay` limits nothing: the chain has no other node" }
      : { subject, level: "ok", text: `${unitsPerDay} units a day: ${store}` };
  });
};
