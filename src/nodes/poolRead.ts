import type { Context } from "../core/context.ts";
import { isAborted } from "../core/lazySignal.ts";
import { NodeError } from "../core/node.ts";
import { retryCause } from "../core/retryCause.ts";
import { RETRY_LIMITS, type RetryCause } from "../core/retryPolicy.ts";
import type { RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import { isNull } from "../core/rpcSource.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import { isEmpty } from "../verification/responseBlock.ts";
import { hasReached, isOnSameBranch } from "./branchCheck.ts";
import { isRetryable, isTransient } from "./errorKind.ts";
import { isRefusal } from "./nodeRefusals.ts";
import { neededBlock } from "./nodeSelection.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

export interface NodeChoice {
  readonly node: UpstreamNode;
  /** The node that may be tried after `node`, or hedged with. */
  readonly next: UpstreamNode | undefined;
  /** `node` was tried before. */
  readonly isRepeated: boolean;
}

const NONE: readonly UpstreamNode[] = [];

/** Whether the error is no answer to the read. After such errors of all nodes, the one whose error was transient is tried again. */
const isNoAnswer = (error: NodeError): boolean => isTransient(error) || isRefusal(error);

/** The decisions of one read: which node is tried next, and whether its outcome ends the read. */
export class PoolRead {
  readonly #request: RpcRequest;
  readonly #context: Context;
  /** An array, because most reads try one node. */
  readonly #tried: UpstreamNode[] = [];
  /** The tried nodes that may answer after a delay. */
  #repeatable: readonly UpstreamNode[] = NONE;
  #lastError: NodeError | undefined;
  /** The errors that count against their nodes if another one answers. */
  #doubtful: { readonly node: UpstreamNode; readonly error: NodeError }[] | undefined;
  #unknownErrors = 0;
  #lastCause: RetryCause = "unavailable";
  /** The first response that is not usable: it is returned if no node has a better one. */
  #fallback: RpcResponse | undefined;

  constructor(request: RpcRequest, context: Context) {
    this.#request = request;
    this.#context = context;
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
    const node = untried[0];
    const next = untried[1];
    if (node) {
      tried.push(node);
      return { node, next, isRepeated: false };
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
    return { node: best, next: undefined, isRepeated: true };
  }

  /** Returns whether the response ends the read. */
  accept(node: UpstreamNode, response: RpcResponse): boolean {
    const cause = this.#rejectionOf(node, response);
    if (cause === undefined) {
      for (const { node: failed, error } of this.#doubtful ?? []) {
        failed.recordDifference(error, this.#request.method);
      }
      return true;
    }
    this.#lastCause = cause;
    // The first response is of the best node. Later ones may be of nodes on other branches.
    this.#fallback ??= cause === "outsideView" ? { ...response, verified: false } : response;
    return false;
  }

  /** Records an error after which the read is retried. Throws any other error. */
  recordError(node: UpstreamNode, error: unknown): void {
    if (!(error instanceof NodeError) || !isRetryable(error) || isAborted(this.#context)) {
      throw error;
    }
    const { block } = this.#request;
    this.#lastCause = retryCause(error);
    const others = this.#repeatable.filter((each) => each !== node);
    this.#repeatable = isTransient(error) ? [...others, node] : others;
    if (error.kind === "other" || error.kind === "unsupportedMethod") {
      this.#doubtful = [...(this.#doubtful ?? []), { node, error }];
    }
    this.#unknownErrors += error.kind === "other" ? 1 : 0;
    if (this.#unknownErrors >= RETRY_LIMITS.pool.maxUnknownErrors) {
      throw error;
    }
    if (block && this.#lastCause === "prunedData") {
      node.recordPruned(block.number);
    }
    // An error that a node returned is more useful to the client than the lack of a response.
    if (!this.#lastError?.text || error.text) {
      this.#lastError = error;
    }
  }

  /** Returns the best response so far, or throws the last error. */
  finish(): RpcResponse {
    if (this.#fallback) {
      return this.#fallback;
    }
    throw this.#lastError ?? unavailable("no node has responded");
  }

  /** Returns why the response is not usable; undefined if it is. */
  #rejectionOf(node: UpstreamNode, response: RpcResponse): RetryCause | undefined {
    if (this.#isOutsideView(node, response)) {
      return "outsideView";
    }
    return this.#request.nullIsError === true && isNull(response) ? "unexpectedNull" : undefined;
  }

  /** Whether the node is on another branch, or is behind: then an empty response is no evidence. */
  #isOutsideView(node: UpstreamNode, { body, verified }: RpcResponse): boolean {
    if (verified !== undefined) {
      return !verified;
    }
    if (!(body instanceof Uint8Array && isEmpty(body))) {
      return false;
    }
    const { heads } = this.#context.view;
    return !hasReached(node, neededBlock(this.#request, heads)) || !isOnSameBranch(node, heads);
  }
}
