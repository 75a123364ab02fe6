import type { Heads } from "../core/heads.ts";
import { RETENTION } from "../core/retention.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import { hasReached, isOnSameBranch } from "./branchCheck.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

/** A failed request costs a client about as much time as this many successful ones. */
const ERROR_COST = 10;
/** Nodes whose latencies differ by less than this rank equally. */
const LATENCY_TOLERANCE_MS = 1;

const NONE: readonly string[] = [];

const cost = (node: UpstreamNode, bestHead: bigint): number => {
  const lag = node.head === undefined || node.head >= bestHead ? 0 : Number(bestHead - node.head);
  return (node.latencyMs + LATENCY_TOLERANCE_MS) * (1 + node.inFlight) * (1 + ERROR_COST * node.errorShare) * (1 + lag);
};

/** Returns the block that a node must have to answer the request. */
export const neededBlock = ({ block, retention }: RpcRequest, heads: Heads): RpcRequest["block"] =>
  block ?? (RETENTION[retention].boundTo === "view" ? heads.latest : undefined);

/** Returns the rank of a node's group; groups with lower ranks are tried first. */
const groupOf = (node: UpstreamNode, block: RpcRequest["block"], heads: Heads, isAllUsed: boolean): number => {
  if (!node.available && !(isAllUsed && node.isFailing)) {
    // The last resort: a chain's only node gets requests even while its breaker is open.
    return 3;
  }
  if (!hasReached(node, block) || !isOnSameBranch(node, heads)) {
    return 2;
  }
  return block !== undefined && block.number < node.oldest ? 1 : 0;
};

export interface RankOptions {
  /** Nodes that fail or hang count as available. */
  readonly isAllUsed?: boolean;
  readonly avoidedOrigins?: readonly string[] | undefined;
}

const hasTiers = ([first, ...others]: readonly UpstreamNode[]): boolean =>
  others.some(({ priority }) => priority !== first?.priority);

/**
 * Orders nodes for a request. With `isAllUsed`, nodes that fail or hang count as available. Nodes that have the block and are on
 * the view's branch come first, those of avoided origins after others, then by tier. With several tiers, nodes with room precede
 * full ones. Then follow nodes that need a trial. Nodes of one group and tier are ordered by latency, load, errors and lag.
 */
export const rankNodes = (
  nodes: readonly UpstreamNode[],
  block: RpcRequest["block"],
  heads: Heads,
  { isAllUsed = false, avoidedOrigins = NONE }: RankOptions = {},
): readonly UpstreamNode[] => {
  if (nodes.length <= 1) {
    return nodes;
  }
  const bestHead = nodes.reduce((high, { head }) => (head !== undefined && head > high ? head : high), 0n);
  const isTiered = hasTiers(nodes);
  return nodes
    .map((node) => ({
      node,
      group: groupOf(node, block, heads, isAllUsed),
      avoided: avoidedOrigins.indexOf(node.origin),
      full: isTiered && node.isFull ? 1 : 0,
      cost: cost(node, bestHead),
    }))
    .sort(
      (a, b) =>
        a.group - b.group ||
        a.avoided - b.avoided ||
        a.full - b.full ||
        a.node.priority - b.node.priority ||
        Number(b.node.needsTrial) - Number(a.node.needsTrial) ||
        a.cost - b.cost,
    )
    .map(({ node }) => node);
};
