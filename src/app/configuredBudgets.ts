import type { Config } from "../config/schema.ts";
import { nodeName } from "../nodes/nodeConfig.ts";
import type { ConfiguredBudget } from "../telemetry/dayBudgets.ts";

/** Lists the budgets in units of keys, then those of nodes. */
export const configuredBudgets = ({
  access,
  chains,
}: Pick<Config, "access" | "chains">): readonly ConfiguredBudget[] => {
  const keys = access.keys.map(({ name: key, limit }) => ({ of: { key }, unitsPerDay: limit?.unitsPerDay }));
  const nodes = chains.flatMap(({ name: chain, nodes }) =>
    nodes.map((node, index) => ({ of: { chain, node: nodeName(node, index) }, unitsPerDay: node.unitsPerDay })),
  );
  return [...keys, ...nodes].flatMap(({ of, unitsPerDay }) => (unitsPerDay === undefined ? [] : [{ of, unitsPerDay }]));
};
