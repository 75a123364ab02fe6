import type { Heads } from "../core/heads.ts";
import { NO_NODE_REACHED, NodeError } from "../core/node.ts";
import { RETENTION } from "../core/retention.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import type { View } from "../core/view.ts";
import { CODES, RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { hasReached, isOnSameBranch } from "./branchCheck.ts";
import { type DataResource, resourceOf } from "./nodeCapabilities.ts";
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

/** Returns the rank of a node's group; groups with lower ranks are tried first. */
const groupOf = (
  node: UpstreamNode,
  block: RpcRequest["block"],
  heads: Heads,
  { isAllUsed, resource }: Required<Pick<RankOptions, "isAllUsed" | "resource">>,
): number => {
  if (!node.available && !(isAllUsed && node.isFailing)) {
    // The last resort: a chain's only node gets requests even while its breaker is open.
    return 3;
  }
  if (!hasReached(node.health, block) || !isOnSameBranch(node.health, heads)) {
    return 2;
  }
  return block !== undefined && block.number < node.health.oldestOf(resource) ? 1 : 0;
};

export interface RankOptions {
  /** Nodes that fail or hang count as available. */
  readonly isAllUsed?: boolean;
  /** The kind of data that the request needs. Default: state. */
  readonly resource?: DataResource;
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
  { isAllUsed = false, resource = "state", avoidedOrigins = NONE }: RankOptions = {},
): readonly UpstreamNode[] => {
  if (nodes.length <= 1) {
    return nodes;
  }
  const bestHead = nodes.reduce((high, { head }) => (head !== undefined && head > high ? head : high), 0n);
  const isTiered = hasTiers(nodes);
  return nodes
    .map((node) => ({
      node,
      group: groupOf(node, block, heads, { isAllUsed, resource }),
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

/** Whether the node may get requests of clients. */
const isInUse = ({ identity, isCordoned }: UpstreamNode): boolean => identity.isIdentified && !isCordoned;

/** Whether most of several nodes fail or hang. The others would then get a multiple of their load. */
const isMostFailing = (nodes: readonly UpstreamNode[]): boolean => {
  let failing = 0;
  for (const node of nodes) {
    failing += node.isFailing ? 1 : 0;
  }
  return failing > 1 && failing * 2 > nodes.length;
};

/** Puts nodes that have refused the method last: they may accept it again, and the other nodes may fail. */
const acceptingFirst = (nodes: readonly UpstreamNode[], method: string): readonly UpstreamNode[] =>
  nodes.every((node) => node.accepts(method))
    ? nodes
    : [...nodes.filter((node) => node.accepts(method)), ...nodes.filter((node) => !node.accepts(method))];

/** Selects the nodes of a chain that may get a request, the best first. */
export class NodeSelection {
  readonly #chain: string;
  readonly #nodes: readonly UpstreamNode[];
  readonly #telemetry: Telemetry;
  #isAllUsed = false;

  constructor(chain: string, nodes: readonly UpstreamNode[], telemetry: Telemetry) {
    this.#chain = chain;
    this.#nodes = nodes;
    this.#telemetry = telemetry;
  }

  /**
   * Returns the nodes that may get the request, in the order in which they are tried. Throws RpcError if no node may ever get it.
   * `isRetry`: nodes that fail or hang follow all others, because only the first retry of a read is free.
   */
  rank(request: RpcRequest, { heads }: View, isRetry = false): readonly UpstreamNode[] {
    const { onlyNode, method, excludedOrigins, avoidedOrigins } = request;
    if (request.write && onlyNode !== undefined && this.#nodes.every(({ name }) => name !== onlyNode)) {
      throw new RpcError(CODES.SERVER, "filter not found");
    }
    const inUse = this.#inUse(method);
    if (onlyNode !== undefined) {
      return inUse.filter(({ name }) => name === onlyNode);
    }
    const serving = inUse.every((node) => node.serves(method)) ? inUse : inUse.filter((node) => node.serves(method));
    const isAllUsed = this.#updateAllUsed(inUse);
    const allowed = excludedOrigins ? serving.filter(({ origin }) => !excludedOrigins.includes(origin)) : serving;
    const ranked = rankNodes(allowed, neededBlock(request, heads), heads, {
      isAllUsed: isAllUsed && !isRetry,
      resource: resourceOf(method),
      avoidedOrigins,
    });
    return acceptingFirst(ranked, method);
  }

  /** Returns the error for a client after this one of a node: if no node can be reached, it says so. */
  errorFor(error: unknown): unknown {
    const isUnreached = error instanceof NodeError && error.kind === "unreachable" && error.reply === undefined;
    return isUnreached && !this.#nodes.some(({ available }) => available)
      ? new NodeError(error.kind, error.node, NO_NODE_REACHED, { status: 503, retryAfterSeconds: 1 })
      : error;
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
    if (inUse.length === 0 && nodes.some(({ isCordoned }) => isCordoned)) {
      throw unavailable("no node can be used: they are cordoned");
    }
    return inUse;
  }

  /** Returns whether most nodes fail or hang, so that all are used, and logs a change. */
  #updateAllUsed(nodes: readonly UpstreamNode[]): boolean {
    const isAllUsed = isMostFailing(nodes);
    if (isAllUsed !== this.#isAllUsed) {
      this.#isAllUsed = isAllUsed;
      const { log, metrics } = this.#telemetry;
      const chain = this.#chain;
      metrics.upstreamAllUsed.set({ chain }, isAllUsed ? 1 : 0);
      log.warn({ chain }, isAllUsed ? "most nodes fail or hang: all of them are used" : "most nodes work again");
    }
    return isAllUsed;
  }
}
