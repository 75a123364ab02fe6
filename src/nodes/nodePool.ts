import { type Clock, systemClock } from "../core/clock.ts";
import type { Context } from "../core/context.ts";
import { NodeError } from "../core/node.ts";
import { type HedgeReason, RETRY_LIMITS, type RetryCause } from "../core/retryPolicy.ts";
import type { NodeSource, RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import type { View } from "../core/view.ts";
import { CODES, RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { hasReached } from "./branchCheck.ts";
import { Hedge, type HedgeOptions } from "./hedge.ts";
import { neededBlock, rankNodes } from "./nodeSelection.ts";
import { type NodeChoice, PoolRead } from "./poolRead.ts";
import { RetryBudget } from "./retryBudget.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

export interface NodePoolOptions {
  /** Number of times that a read is tried, the first time included. */
  readonly attempts: number;
  readonly hedge?: HedgeOptions | undefined;
  readonly clock?: Clock;
}

/** Whether the node may get requests of clients. */
const isInUse = ({ identified, isCordoned }: UpstreamNode): boolean => identified && !isCordoned;

const isAvoided = ({ origin }: UpstreamNode, { avoidedOrigins }: RpcRequest): boolean =>
  avoidedOrigins?.includes(origin) === true;

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

/** The nodes of a chain as one source. A read is retried on other nodes, a write is sent once. */
export class NodePool implements NodeSource {
  readonly #chain: string;
  readonly #nodes: readonly UpstreamNode[];
  readonly #telemetry: Telemetry;
  readonly #options: NodePoolOptions;
  readonly #hedge: Hedge | undefined;
  readonly #clock: Clock;
  readonly #budget: RetryBudget;
  #isAllUsed = false;

  constructor(chain: string, nodes: readonly UpstreamNode[], options: NodePoolOptions, telemetry: Telemetry) {
    const { upstreamHedges } = telemetry.metrics;
    this.#chain = chain;
    this.#nodes = nodes;
    this.#options = options;
    this.#telemetry = telemetry;
    this.#clock = options.clock ?? systemClock;
    this.#budget = new RetryBudget(this.#clock);
    const onHedge = (reason: HedgeReason): void => upstreamHedges.inc({ chain, reason });
    this.#hedge = options.hedge && new Hedge(options.hedge, onHedge, this.#budget);
  }

  request(request: RpcRequest, context: Context): Promise<RpcResponse> {
    return request.write ? this.#write(request, context) : this.#read(request, context);
  }

  #write(request: RpcRequest, context: Context): Promise<RpcResponse> {
    const { onlyNode } = request;
    if (onlyNode !== undefined && this.#nodes.every(({ name }) => name !== onlyNode)) {
      return Promise.reject(new RpcError(CODES.SERVER, "filter not found"));
    }
    let ranked: readonly UpstreamNode[];
    try {
      ranked = this.#rank(request, context.view);
    } catch (error) {
      return Promise.reject(error);
    }
    // A write is sent once, so that it is no trial.
    const trusted = ranked.filter(({ needsTrial }) => !needsTrial);
    return this.#writeToFirst(trusted.length > 0 ? trusted : ranked, request, context);
  }

  /** Sends a write once. A node that refused it for its load did not get it, so that the next one may. */
  async #writeToFirst(
    [node, ...others]: readonly UpstreamNode[],
    request: RpcRequest,
    context: Context,
  ): Promise<RpcResponse> {
    if (node === undefined) {
      throw unavailable("no node has responded yet");
    }
    try {
      return await node.request(request, context);
    } catch (error) {
      if (others.length === 0 || !(error instanceof NodeError && error.kind === "overloaded")) {
        throw error;
      }
      this.#countRetry(error.kind);
      return this.#writeToFirst(others, request, context);
    }
  }

  /** Most reads end with the first attempt. */
  #read(request: RpcRequest, context: Context): Promise<RpcResponse> {
    this.#budget.recordRead();
    const read = new PoolRead(request, context);
    let choice: NodeChoice | undefined;
    try {
      choice = read.choose(this.#rank(request, context.view));
    } catch (error) {
      return Promise.reject(error);
    }
    if (choice === undefined) {
      return this.#readAgain(read, request, context);
    }
    const { node } = choice;
    return this.#send(choice, request, context).then(
      (response) => (read.accept(node, response) ? response : this.#readAgain(read, request, context)),
      (error: unknown) => {
        read.recordError(node, error);
        return this.#readAgain(read, request, context);
      },
    );
  }

  /** Tries the other nodes after the first attempt. */
  async #readAgain(read: PoolRead, request: RpcRequest, context: Context): Promise<RpcResponse> {
    const { attempts } = this.#options;
    for (let attempt = 2; attempt <= attempts; attempt += 1) {
      const choice = read.choose(this.#rank(request, context.view, { isRetry: true }));
      // The first retry is free.
      if (!choice || (attempt > 2 && !this.#budget.take())) {
        break;
      }
      await this.#prepareRetry(choice, { attempt, cause: read.lastCause }, context);
      const { node } = choice;
      try {
        const response = await this.#send(choice, request, context);
        if (read.accept(node, response)) {
          return response;
        }
      } catch (error) {
        read.recordError(node, error);
      }
    }
    return read.finish();
  }

  /** A retry goes to nodes that fail or hang after all others: only the first retry of a read is free. */
  #rank(request: RpcRequest, { heads }: View, { isRetry = false } = {}): readonly UpstreamNode[] {
    const identified = this.#nodes.every(isInUse) ? this.#nodes : this.#nodes.filter(isInUse);
    const { onlyNode, method } = request;
    if (!this.#nodes.some((node) => node.serves(method))) {
      throw new RpcError(
        CODES.METHOD_NOT_FOUND,
        `the method ${method} is not available: no node is configured to get it`,
      );
    }
    if (identified.length === 0 && this.#nodes.some(({ isCordoned }) => isCordoned)) {
      throw unavailable("no node can be used: they are cordoned");
    }
    if (onlyNode !== undefined) {
      return identified.filter(({ name }) => name === onlyNode);
    }
    const serving = identified.every((node) => node.serves(method))
      ? identified
      : identified.filter((node) => node.serves(method));
    const isAllUsed = isMostFailing(identified);
    if (isAllUsed !== this.#isAllUsed) {
      this.#isAllUsed = isAllUsed;
      const { log, metrics } = this.#telemetry;
      const chain = this.#chain;
      metrics.upstreamAllUsed.set({ chain }, isAllUsed ? 1 : 0);
      log.warn({ chain }, isAllUsed ? "most nodes fail or hang: all of them are used" : "most nodes work again");
    }
    const { avoidedOrigins, excludedOrigins } = request;
    const allowed = excludedOrigins ? serving.filter(({ origin }) => !excludedOrigins.includes(origin)) : serving;
    const ranked = rankNodes(allowed, neededBlock(request, heads), heads, {
      isAllUsed: isAllUsed && !isRetry,
      avoidedOrigins,
    });
    return acceptingFirst(ranked, method);
  }

  #send({ node, next }: NodeChoice, request: RpcRequest, context: Context): Promise<RpcResponse> {
    const isSentOnce = next === undefined || next.priority > node.priority || isAvoided(next, request);
    if (!this.#hedge || isSentOnce || !next.available || !hasReached(next, request.block)) {
      return node.request(request, context);
    }
    return this.#hedge.request(node, next, request, context);
  }

  /** Waits before a node that was tried before: the delay doubles with each attempt. */
  async #prepareRetry(
    { isRepeated }: NodeChoice,
    { attempt, cause }: { readonly attempt: number; readonly cause: RetryCause },
    { signal }: Context,
  ): Promise<void> {
    this.#countRetry(cause);
    if (!isRepeated) {
      return;
    }
    await this.#clock.sleep(RETRY_LIMITS.pool.firstDelayMs * 2 ** (attempt - 2), signal);
    signal.throwIfAborted();
  }

  /** Counts a retry by the cause of the previous attempt's failure. */
  #countRetry(reason: RetryCause): void {
    this.#telemetry.metrics.upstreamRetries.inc({ chain: this.#chain, reason });
  }
}
