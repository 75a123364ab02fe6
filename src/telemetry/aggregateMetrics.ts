import { createRequire } from "node:module";
import type * as PromClient from "prom-client";

const require = createRequire(import.meta.url);

/** Returns the text of the metrics of several processes. Each metric says how its values are combined; default: added. */
export const aggregateMetrics = (metrics: readonly (readonly object[])[]): Promise<string> => {
  const { aggregate }: typeof PromClient.AggregatorRegistry = require("prom-client/lib/cluster.js");
  return aggregate([...metrics]).metrics();
};
