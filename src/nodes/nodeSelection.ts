import type { Heads } from "../core/heads.ts";
import { unreachedOr } from "../core/node.ts";
import { RETENTION } from "../core/retention.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import type { View } from "../core/view.ts";
import { CODES, RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import { hasReached, isOnSameBranch } from "./branchCheck.ts";
import { type DataResource, resourceOf } from "./nodeCapabilities.ts";
import type { Use } from "./nodeState.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

/** A failed request costs a client about as much time as this many successful ones. */
const ERROR_COST = 10;
/** Nodes whose latencies differ by less than this rank equally. */
const LATENCY_TOLERANCE_MS = 1;

const NONE: readonly string[] = [];

const cost = ({ health }: UpstreamNode, bestHead: bigint): number => {
  const { head, latencyMs, inFlight, errorShare } = health;
  const lag = head === undefined || head >= bestHead ? 0 : Number(bestHead - head);
  return (latencyMs + LATENCY_TOLERANCE_MS) * (1 + inFlight) * (1 + ERROR_COST * errorShare) * (1 + lag);
};

/** Returns the block that a node must have to answer the request. */
export const neededBlock = ({ block, retention }: RpcRequest, heads: Heads): RpcRequest["block"] =>
  block ?? (RETENTION[retention].boundTo === "view" ? heads.latest : undefined);

const USE_RANKS: Readonly<Record<Use, number>> = { yes: 0, spare: 1, lastResort: 2, no: 3 };

/** Returns the rank of a node by the data that it has. */
const dataRank = (node: UpstreamNode, block: RpcRequest["block"], heads: Heads, resource: DataResource): number => {
  if (!hasReached(node.health, block) || !isOnSameBranch(node.health, heads)) {
    return 2;
  }
  return block !== undefined && block.number < node.health.oldestOf(resource) ? 1 : 0;
};

export interface RankOptions {
  /** The kind of data that the request needs. Default: state. */
  readonly resource?: DataResource;
  readonly avoidedOrigins?: readonly string[] | undefined;
}

const hasTiers = ([first, ...others]: readonly UpstreamNode[]): boolean =>
  others.some(({ priority }) => priority !== first?.priority);

/**
 * Orders nodes for a request by these, one after the other:
 * - their use
 * - whether they have the block and are on the view's branch
 * - whether their origin is avoided
 * - with several tiers, whether they have room
 * - their tier
 * - whether they need a trial
 * - latency, load, errors and lag
 */
export const rankNodes = (
  nodes: readonly UpstreamNode[],
  block: RpcRequest["block"],
  heads: Heads,
  { resource = "state", avoidedOrigins = NONE }: RankOptions = {},
): readonly UpstreamNode[] => {
  if (nodes.length <= 1) {
    return nodes;
  }
  const bestHead = nodes.reduce((high, { head }) => (head !== undefined && head > high ? head : high), 0n);
  const isTiered = hasTiers(nodes);
  return nodes
    .map((node) => ({
      node,
      use: USE_RANKS[node.use],
      data: dataRank(node, block, heads, resource),
      avoided: avoidedOrigins.indexOf(node.origin),
      full: isTiered && node.isFull ? 1 : 0,
      trial: node.state.needsTrial ? 0 : 1,
      cost: cost(node, bestHead),
    }))
    .sort(
      (a, b) =>
        a.use - b.use ||
        a.data - b.data ||
        a.avoided - b.avoided ||
        a.full - b.full ||
        a.node.priority - b.node.priority ||
        a.trial - b.trial ||
        a.cost - b.cost,
    )
    .map(({ node }) => node);
};

const isInUse = ({ use }: UpstreamNode): boolean => use !== "no";

/** Puts nodes that have refused the method last: they may accept it again, and the other nodes may fail. */
const acceptingFirst = (nodes: readonly UpstreamNode[], method: string): readonly UpstreamNode[] =>
  nodes.every((node) => node.accepts(method))
    ? nodes
    : [...nodes.filter((node) => node.accepts(method)), ...nodes.filter((node) => !node.accepts(method))];

/** Selects the nodes of a chain that may get a request, the best first. */
export class NodeSelection {
  readonly #nodes: readonly UpstreamNode[];

  constructor(nodes: readonly UpstreamNode[]) {
    this.#nodes = nodes;
  }

  /** Returns the nodes that may get the request, in the order in which they are tried. Throws RpcError if no node may ever get it. */
  rank(request: RpcRequest, { heads }: View): readonly UpstreamNode[] {
    const { onlyNode, method, excludedOrigins, avoidedOrigins } = request;
    if (request.write && onlyNode !== undefined && this.#nodes.every(({ name }) => name !== onlyNode)) {
      throw new RpcError(CODES.SERVER, "filter not found");
    }
    const inUse = this.#inUse(method);
    if (onlyNode !== undefined) {
      return inUse.filter(({ name }) => name === onlyNode);
    }
    const serving = inUse.every((node) => node.serves(method)) ? inUse : inUse.filter((node) => node.serves(method));
    const allowed = excludedOrigins ? serving.filter(({ origin }) => !excludedOrigins.includes(origin)) : serving;
    const ranked = rankNodes(allowed, neededBlock(request, heads), heads, {
      resource: resourceOf(method),
      avoidedOrigins,
    });
    return acceptingFirst(ranked, method);
  }

  /** Returns the error for a client after this one of a node: if no node can be reached, it says so. */
  errorFor(error: unknown): unknown {
    return unreachedOr(error, this.#nodes);
  }

  /** Returns the nodes that may get requests of clients. Throws RpcError if none may get the method, or if all are cordoned. */
  #inUse(method: string): readonly UpstreamNode[] {
    const nodes = this.#nodes;
    if (!nodes.some((node) => node.serves(method))) {
      throw new RpcError(
        CODES.METHOD_NOT_FOUND,
        `the method ${method} is not available: no node is configured to get it`,
      );
    }
    const inUse = nodes.every(isInUse) ? nodes : nodes.filter(isInUse);
    if (inUse.length === 0 && nodes.some(({ state }) => state.isCordoned)) {
      throw unavailable("no node can be used: they are cordoned");
    }
    return inUse;
  }
}
