import { stateBlock } from "./blockParams.ts";
import { blockRead } from "./blockRead.ts";
import { pendingEstimate } from "./executions.ts";
import type { Method } from "./method.ts";
import { optional, required } from "./paramSpec.ts";
import { readBlockOverrides, readStateOverrides, readTransaction } from "./readTransaction.ts";

/** Returns the gas that a transaction needs, a quantity. */
export const eth_estimateGas: Method = blockRead({
  name: "eth_estimateGas",
  params: [
    required("transaction", readTransaction),
    stateBlock,
    optional("stateOverrides", readStateOverrides),
    optional("blockOverrides", readBlockOverrides),
  ],
  kind: "state",
  cachedCall: "eth_estimateGas",
  pending: pendingEstimate,
  isSlow: true,
});
