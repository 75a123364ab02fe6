import { type Node, NodeError } from "../core/node.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { blocksOf, type FetchRange, halveFetchRange, lastFinal, RefusedRange } from "./fetchRange.ts";
import type { NodeLimits } from "./nodeLimits.ts";
import { parseTooLarge, type TooLarge } from "./rangeTooLarge.ts";
import type { FetchContext } from "./requestLogs.ts";

export interface SplitRefusedOptions {
  readonly chain: string;
  readonly limits: NodeLimits;
  readonly telemetry: Telemetry;
}

/**
 * Records a node's error. Returns the parts of a range that was too large, and undefined for other errors.
 * Throws what is not a node's error, and RefusedRange if the query can plan the range again.
 */
export type SplitRefused = (
  node: Node,
  range: FetchRange,
  context: FetchContext,
  error: unknown,
) => readonly FetchRange[] | undefined;

/** A node's error for pruned data. Other missing data may appear later. */
const PRUNED = /prun|histor|archive|missing trie|no longer/i;

/** Creates the handling of node errors for one chain. */
export const createSplitRefused = ({ chain, limits, telemetry }: SplitRefusedOptions): SplitRefused => {
  const { logSpans, logSplits } = telemetry.metrics;

  const split = (node: Node, range: FetchRange, { filterHash, isPlanned }: FetchContext, tooLarge: TooLarge) => {
    if (range.blockHash === undefined) {
      limits.recordTooLarge(node, filterHash, blocksOf(range), tooLarge);
    }
    const [dimension, parts] = halveFetchRange(range, tooLarge) ?? [];
    if (dimension !== undefined) {
      logSplits.inc({ chain, dimension });
    }
    if (isPlanned === true && tooLarge.what === "blocks" && blocksOf(range) > limits.rangeBlocks(filterHash)) {
      logSpans.inc({ chain, outcome: "tooLarge" });
      throw new RefusedRange(`${node.name} refused a range of ${blocksOf(range)} blocks`);
    }
    return parts;
  };

  return (node, range, context, error) => {
    if (!(error instanceof NodeError)) {
      throw error;
    }
    const tooLarge = parseTooLarge(error);
    const parts = tooLarge && split(node, range, context, tooLarge);
    logSpans.inc({ chain, outcome: parts ? "tooLarge" : error.kind });
    const hasFinal = lastFinal(range, context.view.heads) !== undefined;
    if (parts === undefined && hasFinal && error.kind === "missingData" && PRUNED.test(error.message)) {
      node.recordPruned(range.from);
    }
    return parts;
  };
};
