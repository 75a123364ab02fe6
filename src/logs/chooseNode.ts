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
  readonly rangesPerNode: (node: Node) => number;
}

/**
 * Whether the range may be requested from the node. Logs are compared with those of another origin that can answer now:
 * no query waits for a breaker or a rate limit to have its logs compared.
 */
export const isEligible = ({ origin, available }: Node, { comparedOrigin }: FetchRange): boolean =>
  comparedOrigin === undefined || (origin !== comparedOrigin && available);

/** The nodes of the first tier that has one. A range waits for a slot there, because all ranges are in flight for a moment only. */
const firstTier = (nodes: readonly Node[]): readonly Node[] => {
  const first = nodes.reduce((lowest, { priority }) => Math.min(lowest, priority), Number.POSITIVE_INFINITY);
  return nodes.filter(({ priority }) => priority === first);
};

/**
 * Chooses the node for a fetch range among those that have its blocks and have not failed in this round. A node that is
 * suspended or of another chain is not waited for: that may last longer than the request.
 * A later tier is chosen only if no node of an earlier one is available. It prefers the node that accepts more blocks of the range, then the one with fewer requests in flight.
 */
export const chooseNode = (
  { nodes, limits, slots, rangesPerNode }: NodeChoiceOptions,
  range: FetchRange,
  filterHash: string,
  failed: FailedNodes,
): Choice => {
  const untried = (range.node === undefined ? nodes : [range.node]).filter(
    (node) =>
      isEligible(node, range) &&
      node.serves("eth_getLogs") &&
      !failed.has(node) &&
      node.oldest <= range.from &&
      node.head !== undefined &&
      node.head >= range.to,
  );
  const able = untried.filter(({ usable }) => usable);
  if (able.length === 0) {
    // The node decides whether it is tried: it may have recovered.
    return untried.find(({ isRejecting }) => isRejecting) ?? "none";
  }
  const accepting = able.filter((node) => node.accepts("eth_getLogs"));
  const ready = (accepting.length > 0 ? accepting : able).filter((node) => node.available);
  const others = ready.filter((node) => node !== range.avoided);
  const available = firstTier(others.length > 0 ? others : ready);
  if (available.length === 0 && !failed.isWaitUseful) {
    return "none";
  }
  const size = (node: Node) => Math.min(limits.blocks(node, filterHash), blocksOf(range));
  const [best] = available
    .filter((node) => slots.inFlight(node) < rangesPerNode(node))
    .toSorted((left, right) => size(right) - size(left) || slots.inFlight(left) - slots.inFlight(right));
  return best ?? "busy";
};
