import type { Node } from "../core/node.ts";
import type { Choice, FairScheduler } from "../limits/fairScheduler.ts";
import type { FailedNodes } from "./failedNodes.ts";
import { blocksOf, type FetchRange } from "./fetchRange.ts";
import type { NodeLimits } from "./nodeLimits.ts";

export interface NodeChoiceOptions {
  readonly nodes: readonly Node[];
  readonly limits: Pick<NodeLimits, "blocks">;
  readonly slots: Pick<FairScheduler, "inFlight">;
  /** Limit of fetch ranges in flight on one node. */
  readonly spansPerNode: (node: Node) => number;
}

/**
 * Chooses the node for a fetch range among those that have its blocks and have not failed in this round.
 * It prefers the node that accepts more blocks of the range, then the one with fewer requests in flight.
 */
export const chooseNode = (
  { nodes, limits, slots, spansPerNode }: NodeChoiceOptions,
  range: FetchRange,
  filterHash: string,
  failed: FailedNodes,
): Choice => {
  const able = (range.node === undefined ? nodes : [range.node]).filter(
    (node) => !failed.has(node) && node.oldest <= range.from && node.head !== undefined && node.head >= range.to,
  );
  if (able.length === 0) {
    return "none";
  }
  const size = (node: Node) => Math.min(limits.blocks(node, filterHash), blocksOf(range));
  const [best] = able
    .filter((node) => node.available && slots.inFlight(node) < spansPerNode(node))
    .toSorted((left, right) => size(right) - size(left) || slots.inFlight(left) - slots.inFlight(right));
  return best ?? "busy";
};
