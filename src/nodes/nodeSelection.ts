import type { Heads } from "../core/heads.ts";
import type { RetentionClass, RpcRequest } from "../core/rpcSource.ts";
import type { NodeHealth } from "./upstreamNode.ts";

/** A failed request costs its caller about this many good ones. */
const ERROR_COST = 10;
/** Nodes that differ by less than this are equally near. */
const NEAR_MS = 1;

const cost = (node: NodeHealth, best: bigint): number => {
  const lag = node.head === undefined || node.head >= best ? 0 : Number(best - node.head);
  return (node.latencyMs + NEAR_MS) * (1 + node.inFlight) * (1 + ERROR_COST * node.errorShare) * (1 + lag);
};

export const hasBlock = (node: NodeHealth, block: RpcRequest["block"]): boolean =>
  block === undefined || (node.head !== undefined && block.number <= node.head);

/** The node's newest block is one of the view's; one above them may be of another branch, or is about to be served. */
export const isOnSameBranch = ({ head, headHash }: NodeHealth, heads: Heads): boolean => {
  if (head === undefined || headHash === undefined) {
    return true;
  }
  const held = heads.at(head);
  return held === undefined ? head < heads.latest.number : held.hash === headHash;
};

/** What the answer depends on where the question names no block: who is behind it cannot know. */
const VIEW_BOUND: ReadonlySet<RetentionClass> = new Set(["byTransaction", "head"]);

/** The block that a node must have to answer. */
export const neededBlock = ({ block, retention }: RpcRequest, heads: Heads): RpcRequest["block"] =>
  block ?? (VIEW_BOUND.has(retention) ? heads.latest : undefined);

/** In which group a node is asked; lower is sooner. */
const group = (node: NodeHealth, block: RpcRequest["block"], heads: Heads): number => {
  if (!node.available) {
    // Better than no answer at all: the one node of a chain is asked whatever its breaker says.
    return 3;
  }
  if (!hasBlock(node, block) || !isOnSameBranch(node, heads)) {
    return 2;
  }
  return block !== undefined && block.number < node.oldest ? 1 : 0;
};

/** The nodes in the order they are asked: those that have the block, on the view's branch, first, then by latency, load, errors and lag. */
export const rankNodes = <N extends NodeHealth>(
  nodes: readonly N[],
  block: RpcRequest["block"],
  heads: Heads,
): readonly N[] => {
  if (nodes.length <= 1) {
    return nodes;
  }
  const best = nodes.reduce((high, { head }) => (head !== undefined && head > high ? head : high), 0n);
  return nodes
    .map((node) => ({ node, group: group(node, block, heads), cost: cost(node, best) }))
    .sort((a, b) => a.group - b.group || a.cost - b.cost)
    .map(({ node }) => node);
};
