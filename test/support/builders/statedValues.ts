import { StatedValues, type StatedValuesOptions } from "../../../src/cache/statedValues.ts";
import { silent } from "./silent.ts";

/** Creates the rules of values that no hash proves, for a chain with the node `node1`, or with other nodes. */
export const createStated = (options: Partial<StatedValuesOptions> = {}): StatedValues =>
  new StatedValues({
    chain: "test",
    nodes: [{ name: "node1", origin: "one", priority: 0 }],
    telemetry: silent(),
    ...options,
  });
