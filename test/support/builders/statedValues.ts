import { LiarMarks, type MarkStore } from "../../../src/cache/liarMarks.ts";
import { StatedValues, type StatedValuesOptions } from "../../../src/cache/statedValues.ts";
import { silent } from "./silent.ts";

/** Creates the rules of values that no hash proves, for a chain with the node `node1`, or with other nodes. */
export const createStated = ({
  redis,
  ...options
}: Partial<StatedValuesOptions> & { readonly redis?: MarkStore | undefined } = {}): StatedValues =>
  new StatedValues({
    chain: "test",
    marks: new LiarMarks(redis === undefined ? [] : [redis]),
    keys: { prefix: "test:" },
    nodes: [{ name: "node1", origin: "one", priority: 0 }],
    unconfirmedMs: 600_000,
    telemetry: silent(),
    ...options,
  });
