import { type Clock, systemClock } from "../core/clock.ts";
import type { Context } from "../core/context.ts";
import { isAborted } from "../core/lazySignal.ts";
import { isNodeFault, NodeError } from "../core/node.ts";
import { prunedEverywhere, RETRY_LIMITS, RETRY_RULES, type RetryCause, retryCause } from "../core/retryPolicy.ts";
import { isNull, type NodeSource, type RpcRequest, type RpcResponse } from "../core/rpcSource.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import { TokenBucket } from "../limits/tokenBucket.ts";
import type { Metrics, Telemetry } from "../telemetry/telemetry.ts";
import { isEmpty } from "../verification/responseBlock.ts";
import { hasReached, isOnSameBranch } from "./branchCheck.ts";
import { isRetryable, isTransient } from "./errorKind.ts";
import { Hedge, type HedgeOptions } from "./hedge.ts";
import { NodeSelection, neededBlock } from "./nodeSelection.ts";
import { isRefusal } from "./nodeState.ts";
import { publicNodes, sendToNodes } from "./sendToNodes.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

export interface NodePoolOptions {
  /** Number of times that a read is tried, the first time included. */
  readonly attempts: number;
  readonly hedge?: HedgeOptions | undefined;
  readonly clock?: Clock;
}

const isAvoided = ({ origin }: UpstreamNode, { avoidedOrigins }: RpcRequest): boolean =>
  avoidedOrigins?.includes(origin) === true;

/** The nodes of a chain as one source. A read is retried on other nodes, a write is sent once. */
export class NodePool implements NodeSource {
  readonly #chain: string;
  readonly #metrics: Pick<Metrics, "upstreamRetries" | "upstreamBroadcasts">;
  readonly #selection: NodeSelection;
  readonly #attempts: number;
  readonly #clock: Clock;
  /** Retries after the first one of a read. */
  readonly #retries = new TokenBucket(RETRY_LIMITS.budget.saved, RETRY_LIMITS.budget.saved);
  readonly #hedge: Hedge;

  constructor(
    chain: string,
    nodes: readonly UpstreamNode[],
    { attempts, hedge, clock = systemClock }: NodePoolOptions,
    telemetry: Telemetry,
  ) {
    this.#chain = chain;
    this.#metrics = telemetry.metrics;
    this.#selection = new NodeSelection(nodes);
    this.#attempts = attempts;
    this.#clock = clock;
    this.#hedge = new Hedge(chain, hedge, telemetry.metrics);
  }

  request(request: RpcRequest, context: Context): Promise<RpcResponse> {
    return request.write ? this.#write(request, context) : this.#read(request, context);
  }

  /** Sends a write once. A node that refused it because of its load did not take it, so the next one gets it. */
  async #write(request: RpcRequest, context: Context): Promise<RpcResponse> {
    const sendToAll = request.sendToAll === true;
    const inUse = this.#selection.rank(request, context.view);
    const ranked = sendToAll ? publicNodes(inUse) : inUse;
    const all = sendToAll ? ranked.filter(({ available }) => available) : [];
    if (all.length > 0) {
      return sendToNodes(all, {
        send: (node) => node.request(request, context),
        onOutcome: (node, outcome) =>
          this.#metrics.upstreamBroadcasts.inc({ chain: this.#chain, node: node.name, outcome }),
      });
    }
    // A write is sent once, so it is never a trial while another node is available.
    const trusted = ranked.filter(({ state }) => !state.needsTrial);
    const nodes = trusted.some(({ available }) => available) ? trusted : ranked;
    for (const node of nodes) {
      try {
        return await node.request(request, context);
      } catch (error) {
        if (node === nodes.at(-1) || !(error instanceof NodeError && error.kind === "overloaded")) {
          throw this.#selection.errorFor(error);
        }
        this.#countRetry(error.kind);
      }
    }
    throw unavailable("no node has responded yet");
  }

  /** Most reads end with the first attempt. */
  #read(request: RpcRequest, context: Context): Promise<RpcResponse> {
    this.#retries.earn(RETRY_LIMITS.budget.share);
    const read = new PoolRead(request, context, this.#attempts);
    let choice: NodeChoice | undefined;
    try {
      choice = read.choose(this.#selection.rank(request, context.view));
    } catch (error) {
      return Promise.reject(error);
    }
    if (choice === undefined) {
      return this.#readAgain(read);
    }
    return this.#attempt(read, choice, () => this.#readAgain(read));
  }

  /** Tries the other nodes after the first attempt. */
  async #readAgain(read: PoolRead): Promise<RpcResponse> {
    const { request, context } = read;
    while (read.mayTryAgain) {
      const choice = read.choose(this.#selection.rank(request, context.view));
      if (!choice || !this.#mayRetry(read.attempts) || !(await this.#prepareRetry(choice, read.attempts, context))) {
        break;
      }
      this.#countRetry(read.lastCause);
      const response = await this.#attempt(read, choice, () => undefined);
      if (response !== undefined) {
        return response;
      }
    }
    try {
      return read.finish();
    } catch (error) {
      throw this.#selection.errorFor(error);
    }
  }

  /** Sends a read to the chosen node. If its outcome does not end the read, returns what `orElse` returns. */
  #attempt<Else>(read: PoolRead, choice: NodeChoice, orElse: () => Else | Promise<Else>): Promise<RpcResponse | Else> {
    return this.#send(read, choice).then(
      (response) => (read.accept(choice, response) ? response : orElse()),
      (error: unknown) => {
        read.recordError(choice, error);
        return orElse();
      },
    );
  }

  #send(read: PoolRead, { node, others }: NodeChoice): Promise<RpcResponse> {
    const { request, context } = read;
    const [next] = others;
    if (next === undefined) {
      return node.request(request, context);
    }
    const isHedged =
      next.priority <= node.priority &&
      !isAvoided(next, request) &&
      next.available &&
      hasReached(next.health, request.block);
    const isMovable = read.mayTryAgain && read.attempts === 1;
    const lateNodes = read.mayTryAgain ? others : NONE;
    const nodes = { first: node, hedge: isHedged ? next : undefined, others: lateNodes, isMovable };
    return this.#hedge.request(nodes, request, context, (late) => {
      if (!read.mayTryAgain || !this.#mayRetry(read.attempts + 1)) {
        return false;
      }
      read.recordLate(late);
      this.#countRetry(read.lastCause);
      return true;
    });
  }

  /** The first retry of a read is free. */
  #mayRetry(attempt: number): boolean {
    return attempt <= 2 || this.#retries.take();
  }

  /**
   * Waits before a node that was tried before: the delay doubles with each attempt. Returns false if the attempt would begin after
   * the deadline.
   */
  async #prepareRetry({ isRepeated }: NodeChoice, attempt: number, { signal, deadlineMs }: Context): Promise<boolean> {
    const delayMs = isRepeated ? RETRY_LIMITS.pool.firstDelayMs * 2 ** (attempt - 2) : 0;
    if (performance.now() + delayMs >= deadlineMs) {
      return false;
    }
    if (delayMs > 0) {
      await this.#clock.sleep(delayMs, signal);
      signal.throwIfAborted();
    }
    return true;
  }

  /** Counts a retry by the cause of the previous attempt's failure. */
  #countRetry(reason: RetryCause): void {
    this.#metrics.upstreamRetries.inc({ chain: this.#chain, reason });
  }
}

interface NodeChoice {
  readonly node: UpstreamNode;
  /** The nodes that may be tried after `node`. The read may be hedged with the first one. */
  readonly others: readonly UpstreamNode[];
  /** `node` was tried before. */
  readonly isRepeated: boolean;
}

const NONE: readonly UpstreamNode[] = [];

/** Whether the error is no answer to the read. After such errors of all nodes, the one whose error was transient is tried again. */
const isNoAnswer = (error: NodeError): boolean => isTransient(error) || isRefusal(error);

/** Returns the node of this name: a hedge, or the node of a late read, may have been the one that responded. */
const nodeNamed = ({ node, others }: NodeChoice, name: string | undefined): UpstreamNode =>
  others.find((each) => each.name === name) ?? node;

/** The decisions of one read: which node is tried next, and whether its outcome ends the read. */
class PoolRead {
  readonly request: RpcRequest;
  readonly context: Context;
  readonly #maxAttempts: number;
  #attempts = 0;
  /** An array, because most reads try one node. */
  readonly #tried: UpstreamNode[] = [];
  /** The tried nodes that may answer after a delay. */
  #repeatable: readonly UpstreamNode[] = NONE;
  #lastError: NodeError | undefined;
  /** Each node that was tried says that it has pruned the data. */
  #isPruned = true;
  /** The errors that count against their nodes only if another one answers: they may quote the client. */
  #doubtful: { readonly node: UpstreamNode; readonly error: NodeError }[] | undefined;
  #lastCause: RetryCause = "unavailable";
  /** The first response that is not usable: it is returned if no node has a better one. */
  #fallback: RpcResponse | undefined;

  constructor(request: RpcRequest, context: Context, maxAttempts: number) {
    this.request = request;
    this.context = context;
    this.#maxAttempts = maxAttempts;
  }

  get attempts(): number {
    return this.#attempts;
  }

  get mayTryAgain(): boolean {
    return this.#attempts < this.#maxAttempts;
  }

  /** Why the last attempt did not end the read. */
  get lastCause(): RetryCause {
    return this.#lastCause;
  }

  /**
   * Selects the best node that was not tried. If there is none, selects the best one whose error was transient.
   * Returns undefined if no node can be tried. Throws if there is no node at all.
   */
  choose(ranked: readonly UpstreamNode[]): NodeChoice | undefined {
    const tried = this.#tried;
    const untried = tried.length === 0 ? ranked : ranked.filter((each) => !tried.includes(each));
    const [node] = untried;
    if (node) {
      tried.push(node);
      this.#attempts += 1;
      return { node, others: untried.length > 1 ? untried.slice(1) : NONE, isRepeated: false };
    }
    if (this.#fallback || (this.#lastError && !isNoAnswer(this.#lastError))) {
      return undefined;
    }
    const best = ranked.find((each) => this.#repeatable.includes(each));
    if (!best) {
      if (this.#lastError) {
        return undefined;
      }
      throw unavailable("no node has responded yet");
    }
    this.#attempts += 1;
    return { node: best, others: NONE, isRepeated: true };
  }

  /** Records that this node gets the read, because the ones before it have not responded in time. */
  recordLate(node: UpstreamNode): void {
    this.#tried.push(node);
    this.#attempts += 1;
    this.#recordCause("timeout", true);
  }

  #recordCause(cause: RetryCause, isRepeated: boolean): void {
    this.#lastCause = cause;
    this.#isPruned &&= cause === "prunedData";
    this.#attempts -= RETRY_RULES[cause].pool === "anyNode" && !isRepeated ? 1 : 0;
  }

  /** Returns whether the response ends the read. */
  accept(choice: NodeChoice, response: RpcResponse): boolean {
    const { isRepeated } = choice;
    const node = nodeNamed(choice, response.node);
    const cause = this.#rejectionOf(node, response);
    if (cause === undefined) {
      for (const { node: failed, error } of this.#doubtful ?? []) {
        this.#recordDifference(failed, error, response);
      }
      return true;
    }
    this.#recordCause(cause, isRepeated);
    // The best node's response comes first. Later ones may come from nodes on other branches.
    this.#fallback ??= cause === "outsideView" ? { ...response, verified: false } : response;
    return false;
  }

  /** Records an error after which the read is retried. Throws any other error. */
  recordError(choice: NodeChoice, error: unknown): void {
    if (!(error instanceof NodeError) || !isRetryable(error) || isAborted(this.context)) {
      throw error;
    }
    const { isRepeated } = choice;
    const node = nodeNamed(choice, error.node);
    this.#recordCause(retryCause(error), isRepeated);
    const others = this.#repeatable.filter((each) => each !== node);
    this.#repeatable = isTransient(error) ? [...others, node] : others;
    if (error.kind === "other" || error.kind === "unsupportedMethod" || this.#lastCause === "prunedData") {
      this.#doubtful = [...(this.#doubtful ?? []), { node, error }];
    }
    // An error that a node returned is more useful to the client than the lack of a response.
    if (!this.#lastError?.text || error.text) {
      this.#lastError = error;
    }
  }

  /** Another node answered the read that this node returned the error to. */
  #recordDifference(node: UpstreamNode, error: NodeError, { block: answered }: RpcResponse): void {
    const { block = answered, method } = this.request;
    if (retryCause(error) !== "prunedData") {
      node.state.methodFailed(error, method);
    } else if (block !== undefined) {
      node.recordPruned(method, block.number);
    }
  }

  /** Returns the best response so far, or throws the last error. */
  finish(): RpcResponse {
    // The last error is not its node's fault, for example its branch: a retry may return the missing part.
    const isOpen = this.#fallback?.isPartial === true && this.#lastError && !isNodeFault(this.#lastError.kind);
    if (this.#fallback && !isOpen) {
      return this.#fallback;
    }
    if (this.#lastError !== undefined && this.#isPruned) {
      throw prunedEverywhere(this.#lastError);
    }
    throw this.#lastError ?? unavailable("no node has responded");
  }

  /** Returns why the response is not usable; undefined if it is. */
  #rejectionOf(node: UpstreamNode, response: RpcResponse): RetryCause | undefined {
    if (this.#isOutsideView(node, response)) {
      return "outsideView";
    }
    if (response.isPartial === true) {
      return "unverified";
    }
    return this.request.nullIsError === true && isNull(response) ? "unexpectedNull" : undefined;
  }

  /** Whether the node is on another branch, or is behind: then an empty response is no evidence. */
  #isOutsideView(node: UpstreamNode, { body, verified }: RpcResponse): boolean {
    if (verified !== undefined) {
      return !verified;
    }
    if (!(body instanceof Uint8Array && isEmpty(body))) {
      return false;
    }
    const { heads } = this.context.view;
    return !hasReached(node.health, neededBlock(this.request, heads)) || !isOnSameBranch(node.health, heads);
  }
}
