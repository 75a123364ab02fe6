import type { NodeError } from "./node.ts";
import type { RetryCause } from "./retryPolicy.ts";

/**
 * Whether a message says that the block itself is not there (yet), in contrast to pruned state or history. EIP-1474's
 * "resource not found" is anvil's error for a hash that a reorganisation replaced. It must not count as pruned data.
 */
export const isMissingBlock = (message: string): boolean =>
  /header (for hash )?not found|request beyond head block|unknown block|could not find block|block .*not found|resource not found|block ?out ?of ?range/i.test(
    message,
  );

/** Returns the row of RETRY_RULES for a node's error. */
export const retryCause = ({ kind, message }: NodeError): RetryCause => {
  if (kind !== "missingData") {
    return kind;
  }
  return isMissingBlock(message) ? "missingBlock" : "prunedData";
};
