import { type Clock, systemClock } from "../core/clock.ts";
import type { BlockId } from "../core/heads.ts";
import { isNull } from "../core/isNull.ts";
import { NodeError } from "../core/node.ts";
import { RETENTION } from "../core/retention.ts";
import { RETRY_LIMITS } from "../core/retryPolicy.ts";
import type { RequestContext, RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import type { Call } from "../jsonrpc/call.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import type { Verifier } from "../verification/verifier.ts";
import { type BlockPresence, createBlockPresence } from "./blockPresence.ts";
import { anchorBlock, matchesView } from "./branchCheck.ts";
import { decideBranch } from "./branchVerdict.ts";
import { type ByHashSupport, createByHashSupport, isByHashRequest } from "./byHashSupport.ts";
import { attemptOnNode, type NodeAttempt } from "./nodeAttempt.ts";
import { hasBlock, isOnSameBranch } from "./nodeSelection.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

type Delays = Iterator<number, undefined>;

/** Whether the response to a request depends on no block that the node may lack. */
const needsNoBlock = ({ block, isInKnownBlock, retention }: RpcRequest): boolean =>
  block === undefined && !isInKnownBlock && RETENTION[retention].branchAnchor === undefined;

/**
 * Sends requests to one node so that the response can be verified: by block hash if the node supports it.
 * A response by number is compared with the view's branch. A missing block is requested again if the node
 * announced it: one machine of a node may have the block before another one.
 */
export class VerifiedRequests {
  readonly #node: UpstreamNode;
  readonly #sender: { readonly node: UpstreamNode; readonly verifier: Verifier | undefined };
  readonly #clock: Clock;
  readonly #byHashSupport: ByHashSupport;
  readonly #readPresence: ReturnType<typeof createBlockPresence>;

  constructor(node: UpstreamNode, verifier: Verifier | undefined, clock: Clock = systemClock) {
    this.#node = node;
    this.#sender = { node, verifier };
    this.#clock = clock;
    this.#byHashSupport = createByHashSupport(node);
    this.#readPresence = createBlockPresence(node);
  }

  /** Rejects with NodeError; `otherBranch` if the response is not of the view's branch, or of a node that lacks the block. */
  async request(request: RpcRequest, context: RequestContext): Promise<RpcResponse> {
    const delays = RETRY_LIMITS.node.delaysMs.values();
    const support = this.#byHashSupport.isByHashSupported(request, context);
    const isSupported = support instanceof Promise ? await support : support;
    const byHash = isSupported ? request.byHash : undefined;
    const fromHash = byHash && (await this.#tryByHash(byHash, request, context, delays));
    if (fromHash && fromHash !== "unsupported") {
      return fromHash;
    }
    const { response, error, isMissing } =
      needsNoBlock(request) || (byHash && fromHash === undefined)
        ? await this.#attemptByNumber(request, context)
        : await this.#retryMissing(() => this.#attemptByNumber(request, context), context, delays);
    if (response === undefined) {
      throw error;
    }
    // The pool and the method decide about `null`. Any other response belongs to another block.
    if (isMissing && !isNull(response) && !RETENTION[request.retention].cachesNull) {
      throw this.#otherBranch(request);
    }
    if (byHash && fromHash === "unsupported") {
      this.#byHashSupport.markUnsupported(byHash.method);
    }
    return response;
  }

  /** Repeats the attempt while the node lacks a block that it announced, after each of the delays. */
  async #retryMissing(
    attempt: () => Promise<NodeAttempt>,
    { signal }: RequestContext,
    delays: Delays,
    isReplaced?: () => Promise<boolean>,
  ): Promise<NodeAttempt> {
    let outcome = await attempt();
    while (this.#hasAnnounced(outcome)) {
      const delayMs = delays.next().value;
      if (delayMs === undefined || (await isReplaced?.())) {
        break;
      }
      await this.#clock.sleep(delayMs, signal);
      signal.throwIfAborted();
      outcome = await attempt();
    }
    return outcome;
  }

  /** Whether the node announced the block that it lacks. */
  #hasAnnounced({ isMissing, block }: NodeAttempt): boolean {
    const { announced } = this.#node;
    return isMissing && block !== undefined && announced !== undefined && block <= announced;
  }

  /** Returns undefined if the node does not know the hash, or may not know it (`null`). */
  async #tryByHash(
    call: Call,
    request: RpcRequest,
    context: RequestContext,
    delays: Delays,
  ): Promise<RpcResponse | "unsupported" | undefined> {
    try {
      return await this.#requestByHash(call, request, context, delays);
    } catch (error) {
      if (isByHashRequest(error, request)) {
        return "unsupported";
      }
      throw error;
    }
  }

  async #requestByHash(
    call: Call,
    request: RpcRequest,
    context: RequestContext,
    delays: Delays,
  ): Promise<RpcResponse | undefined> {
    const { number, hash } = request.block ?? {};
    // Waiting does not bring back a block that a reorganisation replaced.
    const isReplaced = async (): Promise<boolean> =>
      number !== undefined && hash !== undefined && (await this.#readPresence({ number, hash })) === "replaced";
    const attempt = () => attemptOnNode(this.#sender, call, request, context);
    const { response, isMissing } = await this.#retryMissing(attempt, context, delays, isReplaced);
    if (isMissing || response === undefined || isNull(response)) {
      return undefined;
    }
    // Some nodes return another block if they do not know the hash.
    if (matchesView(request, response, context.view.heads) === false) {
      return undefined;
    }
    if (number === undefined || hash === undefined) {
      return response;
    }
    return { ...response, verified: true, block: { number, hash } };
  }

  /** Sends the request by number, or without a block. The response is of the node's own branch, which is then verified. */
  #attemptByNumber(request: RpcRequest, context: RequestContext): Promise<NodeAttempt> {
    const anchor = anchorBlock(this.#node, request, context.view.heads);
    // Nothing in the response can show a branch.
    if (anchor === undefined && request.blockField === undefined && !request.nullIsError) {
      return attemptOnNode(this.#sender, request, request, context);
    }
    return this.#attemptAtAnchor(anchor, request, context);
  }

  async #attemptAtAnchor(
    anchor: BlockId | undefined,
    request: RpcRequest,
    context: RequestContext,
  ): Promise<NodeAttempt> {
    const { heads } = context.view;
    // A response from before the node reached the view's branch would look right afterwards.
    const isPresent = anchor === undefined || (hasBlock(this.#node, anchor) && isOnSameBranch(this.#node, heads));
    const before: BlockPresence = isPresent ? "present" : await this.#readPresence(anchor);
    if (before === "replaced") {
      throw this.#otherBranch(request);
    }
    const attempt = await attemptOnNode(this.#sender, request, request, context);
    const { response, isMissing } = attempt;
    if (response === undefined) {
      return attempt;
    }
    const isUndecided = response.block === undefined || RETENTION[request.retention].branchAnchor === "finalized";
    const after = anchor && isUndecided ? await this.#readPresence(anchor) : undefined;
    const verdict = decideBranch({
      retention: request.retention,
      presence: after === "present" ? before : after,
      matchesView: matchesView(request, response, heads),
      isMissing,
    });
    switch (verdict) {
      case "otherBranch":
        throw this.#otherBranch(request);
      case "missingBlock":
        return { response: { ...response, verified: false }, isMissing: true, block: anchor?.number };
      case "undecided":
        return attempt;
      default:
        return { ...attempt, response: { ...response, verified: verdict === "verified" } };
    }
  }

  #otherBranch({ method }: RpcRequest): NodeError {
    const { name } = this.#node;
    const message = `header not found: ${name} answers ${method} of another branch`;
    return new NodeError("otherBranch", name, message, { code: CODES.SERVER });
  }
}
