import type { Question } from "../chain/source.ts";
import type { Standing } from "./upstreamNode.ts";

/** A failed request costs its caller about this many good ones. */
const ERROR_COST = 10;
/** Nodes that differ by less than this are equally near. */
const NEAR_MS = 1;

const cost = (node: Standing, best: bigint): number => {
  const lag = node.head === undefined || node.head >= best ? 0 : Number(best - node.head);
  return (node.latencyMs + NEAR_MS) * (1 + node.inFlight) * (1 + ERROR_COST * node.errorShare) * (1 + lag);
};

export const covers = (node: Standing, block: Question["block"]): boolean =>
  block === undefined || (node.head !== undefined && block.number <= node.head);

/** In which group a node is asked; lower is sooner. */
const group = (node: Standing, block: Question["block"]): number => {
  if (!node.available) {
    // Better than no answer at all: the one node of a chain is asked whatever its breaker says.
    return 3;
  }
  if (!covers(node, block)) {
    return 2;
  }
  return block !== undefined && block.number < node.oldest ? 1 : 0;
};

/** The nodes in the order they are asked: those that have the block first, then by latency, load, errors and lag. */
export const ranked = <N extends Standing>(nodes: readonly N[], block: Question["block"]): readonly N[] => {
  if (nodes.length <= 1) {
    return nodes;
  }
  const best = nodes.reduce((high, { head }) => (head !== undefined && head > high ? head : high), 0n);
  return nodes
    .map((node) => ({ node, group: group(node, block), cost: cost(node, best) }))
    .sort((a, b) => a.group - b.group || a.cost - b.cost)
    .map(({ node }) => node);
};
