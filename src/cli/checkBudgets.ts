import type { Config } from "../config/schema.ts";
import { nodeName } from "../nodes/nodeConfig.ts";
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
  const keys = config.access.keys.map(({ name, limit }) => ({
    subject: `key ${name}`,
    unitsPerDay: limit?.unitsPerDay,
    isAlone: false,
  }));
  const nodes = config.chains.flatMap(({ name: chain, nodes }) =>
    nodes.map((node, index) => ({
      subject: `${chain}/${nodeName(node, index)} units`,
      unitsPerDay: node.unitsPerDay,
      isAlone: nodes.length === 1,
    })),
  );
  return [...keys, ...nodes].flatMap(({ subject, unitsPerDay, isAlone }): CheckResult[] => {
    if (unitsPerDay === undefined) {
      return [];
    }
    return isAlone
      ? [{ subject, level: "warn", text: "`unitsPerDay` limits nothing: the chain has no other node" }]
      : [{ subject, level: "ok", text: `${unitsPerDay} units a day: ${store}` }];
  });
};
