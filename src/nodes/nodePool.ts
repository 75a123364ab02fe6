import { type Clock, systemClock } from "../core/clock.ts";
import type { Heads } from "../core/heads.ts";
import { isNull } from "../core/isNull.ts";
import { NodeError } from "../core/node.ts";
import { RETRY_LIMITS, type RetryCause } from "../core/retryPolicy.ts";
import type { RequestContext, RpcRequest, RpcResponse, RpcSource } from "../core/rpcSource.ts";
import type { View } from "../core/view.ts";
import { CODES, RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import { isEmpty } from "../verification/responseBlock.ts";
import { isRetryable, isTransient, retryCause } from "./errorKind.ts";
import { createHedge, type Hedge, type HedgeOptions } from "./hedge.ts";
import { hasBlock, isOnSameBranch, neededBlock, rankNodes } from "./nodeSelection.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

export interface NodePoolOptions {
  /** Number of times that a read is tried, the first time included. */
  readonly attempts: number;
  readonly hedge?: HedgeOptions;
  readonly clock?: Clock;
  readonly onRetry: () => void;
  readonly onHedge: () => void;
}

/** The attempts of one read so far. */
interface ReadState {
  readonly tried: Set<UpstreamNode>;
  lastError: NodeError | undefined;
  /** The first response that is not usable: it is returned if no node has a better one. */
  fallback: RpcResponse | undefined;
}

interface Choice {
  readonly node: UpstreamNode;
  /** The node that may be tried after `node`, or hedged with. */
  readonly next: UpstreamNode | undefined;
  /** `node` was tried before. */
  readonly isRepeated: boolean;
}

/**
 * Selects the best node that was not tried. A tried node is selected again only after a transient error.
 * Returns undefined if no node can be tried. Throws if there is no node at all.
 */
const chooseNode = (ranked: readonly UpstreamNode[], { tried, lastError, fallback }: ReadState): Choice | undefined => {
  const [node, next] = tried.size === 0 ? ranked : ranked.filter((each) => !tried.has(each));
  if (node) return { node, next, isRepeated: false };
  if (fallback || (lastError && !isTransient(lastError))) return undefined;
  const [best] = ranked;
  if (!best) throw unavailable("no node has answered yet");
  return { node: best, next: undefined, isRepeated: true };
};

/** Whether the response is of no use in the view: the node is behind (an empty response is no evidence), or on another branch. */
const isOutsideView = (
  node: UpstreamNode,
  request: RpcRequest,
  { body, verified }: RpcResponse,
  heads: Heads,
): boolean => {
  if (verified !== undefined) return !verified;
  if (!(body instanceof Uint8Array && isEmpty(body))) return false;
  return !hasBlock(node, neededBlock(request, heads)) || !isOnSameBranch(node, heads);
};

/** Returns why the response is not usable; undefined if it is. */
const rejectResponse = (
  node: UpstreamNode,
  request: RpcRequest,
  response: RpcResponse,
  heads: Heads,
): RetryCause | undefined => {
  if (isOutsideView(node, request, response, heads)) return "outsideView";
  return request.nullIsError === true && isNull(response) ? "unexpectedNull" : undefined;
};

/** Records an error after which the read is retried. Throws any other error. */
const recordError = (state: ReadState, node: UpstreamNode, { block }: RpcRequest, error: unknown): void => {
  if (!(error instanceof NodeError) || !isRetryable(error)) throw error;
  if (block && retryCause(error) === "prunedData") node.recordPruned(block.number);
  // An error that a node returned is more useful to the client than the lack of a response.
  const { lastError } = state;
  state.lastError = lastError?.text && !error.text ? lastError : error;
};

/** A node that hangs gets half of the time that is left, while another node can still be tried. */
const halveDeadline = (context: RequestContext): RequestContext => {
  const nowMs = performance.now();
  return { ...context, deadlineMs: nowMs + (context.deadlineMs - nowMs) / 2 };
};

/** The nodes of a chain as one source. A read is retried on other nodes, a write is sent once. */
class NodePool implements RpcSource {
  readonly #nodes: readonly UpstreamNode[];
  readonly #options: NodePoolOptions;
  readonly #hedge: Hedge | undefined;
  readonly #clock: Clock;

  constructor(nodes: readonly UpstreamNode[], options: NodePoolOptions) {
    this.#nodes = nodes;
    this.#options = options;
    this.#hedge = options.hedge && createHedge(options.hedge, options.onHedge);
    this.#clock = options.clock ?? systemClock;
  }

  request(request: RpcRequest, context: RequestContext): Promise<RpcResponse> {
    return request.write ? this.#write(request, context) : this.#read(request, context);
  }

  async #write(request: RpcRequest, context: RequestContext): Promise<RpcResponse> {
    const { filterOwner } = request;
    if (filterOwner !== undefined && this.#nodes.every(({ name }) => name !== filterOwner)) {
      throw new RpcError(CODES.SERVER, "filter not found");
    }
    const [node] = this.#rank(request, context.view);
    if (!node) throw unavailable("no node has answered yet");
    return node.request(request, context);
  }

  async #read(request: RpcRequest, context: RequestContext): Promise<RpcResponse> {
    const { attempts } = this.#options;
    const state: ReadState = { tried: new Set(), lastError: undefined, fallback: undefined };
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      const choice = chooseNode(this.#rank(request, context.view), state);
      if (!choice) break;
      if (attempt > 1) await this.#prepareRetry(choice, attempt, context);
      const { node, next } = choice;
      state.tried.add(node);
      const isLast = attempt === attempts || !next?.available;
      try {
        const response = await this.#send(choice, request, isLast ? context : halveDeadline(context));
        const cause = rejectResponse(node, request, response, context.view.heads);
        if (cause === undefined) return response;
        // The first response is of the best node. Later ones may be of nodes on other branches.
        state.fallback ??= cause === "outsideView" ? { ...response, verified: false } : response;
      } catch (error) {
        if (context.signal.aborted) throw error;
        recordError(state, node, request, error);
      }
    }
    if (state.fallback) return state.fallback;
    throw state.lastError ?? unavailable("no node has answered");
  }

  #rank(request: RpcRequest, { heads }: View): readonly UpstreamNode[] {
    const identified = this.#nodes.filter(({ identified }) => identified);
    const { filterOwner } = request;
    const allowed = filterOwner === undefined ? identified : identified.filter(({ name }) => name === filterOwner);
    return rankNodes(allowed, neededBlock(request, heads), heads);
  }

  #send({ node, next }: Choice, request: RpcRequest, context: RequestContext): Promise<RpcResponse> {
    if (!this.#hedge || !next?.available || !hasBlock(next, request.block)) return node.request(request, context);
    return this.#hedge.run(
      context.signal,
      (signal) => node.request(request, { ...context, signal }),
      (signal) => next.request(request, { ...context, signal }),
    );
  }

  /** Waits before a node that was tried before: the delay doubles with each attempt. */
  async #prepareRetry({ isRepeated }: Choice, attempt: number, { signal }: RequestContext): Promise<void> {
    this.#options.onRetry();
    if (!isRepeated) return;
    await this.#clock.sleep(RETRY_LIMITS.pool.firstDelayMs * 2 ** (attempt - 2), signal);
    signal.throwIfAborted();
  }
}

/** Creates the pool of a chain's nodes. */
export const createNodePool = (nodes: readonly UpstreamNode[], options: NodePoolOptions): RpcSource =>
  new NodePool(nodes, options);
