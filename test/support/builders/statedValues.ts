import { StatedValues, type StatedValuesOptions } from "../../../src/cache/statedValues.ts";

/** Creates the rules of values that no hash proves, for a chain with the node `node1`, or with other nodes. */
export const createStated = (options: Partial<StatedValuesOptions> = {}): StatedValues =>
  new StatedValues({ nodes: [{ name: "node1", origin: "one" }], ...options });
