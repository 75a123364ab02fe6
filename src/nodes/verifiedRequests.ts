import { type Clock, systemClock } from "../core/clock.ts";
import type { Context } from "../core/context.ts";
import type { BlockId } from "../core/heads.ts";
import { isNull } from "../core/isNull.ts";
import { NodeError } from "../core/node.ts";
import { RETENTION, type RetentionClass } from "../core/retention.ts";
import { RETRY_LIMITS } from "../core/retryPolicy.ts";
import type { RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import type { Awaitable } from "../jsonrpc/awaitable.ts";
import type { Call } from "../jsonrpc/call.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import type { Verifier } from "../verification/verifier.ts";
import { type BlockPresence, createBlockPresence } from "./blockPresence.ts";
import { anchorBlock, matchesView } from "./branchCheck.ts";
import { type ByHashSupport, createByHashSupport, isByHashRequest } from "./byHashSupport.ts";
import { attemptOnNode, type NodeAttempt } from "./nodeAttempt.ts";
import { hasReached, isOnSameBranch } from "./nodeSelection.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

/** The known facts about a response that was requested by number, or without a block. */
interface BranchFacts {
  readonly retention: RetentionClass;
  /** Whether the node has the anchor block before and after the response; undefined if that was not read. */
  readonly presence: BlockPresence | undefined;
  /** Whether the response's block hash is the view's; undefined if the response has none. */
  readonly matchesView: boolean | undefined;
  /** The response is empty although the object must exist. */
  readonly isMissing: boolean;
}

/**
 * `verified`: the response belongs to the view's branch. `unverified`: it may belong to another branch.
 * `undecided`: nothing is known against it. `otherBranch`: it must be rejected.
 * `missingBlock`: the node does not have the anchor block (yet).
 */
type BranchVerdict = "verified" | "unverified" | "undecided" | "otherBranch" | "missingBlock";

/** Decides whether a response belongs to the view's branch. */
const decideBranch = ({ retention, presence, matchesView, isMissing }: BranchFacts): BranchVerdict => {
  const { branchAnchor, boundTo, cachesNull } = RETENTION[retention];
  if (presence === "replaced" || matchesView === false) {
    return "otherBranch";
  }
  // A node without the finalized block is on a branch that begins below it.
  if (presence === "missing") {
    return branchAnchor === "finalized" ? "otherBranch" : "missingBlock";
  }
  // A `null` that can be cached is a response of the view's branch. The pool decides whether it can be right.
  if ((isMissing && !cachesNull) || presence === "unknown") {
    return "unverified";
  }
  // A node may be several machines: the block of one does not verify the state that another one returned.
  const isVerified = matchesView ?? (presence === "present" && boundTo === "view");
  return isVerified ? "verified" : "undecided";
};

type Delays = Iterator<number, undefined>;

interface MissingRetry {
  readonly context: Context;
  readonly delays: Delays;
  readonly isReplaced: (() => Promise<boolean>) | undefined;
}

/** Returns the response to a request by hash; undefined if it may be of another block. */
const acceptByHash = (
  { response, isMissing }: NodeAttempt,
  request: RpcRequest,
  { view }: Context,
): RpcResponse | undefined => {
  if (isMissing || response === undefined || isNull(response)) {
    return undefined;
  }
  // Some nodes return another block if they do not know the hash.
  if (matchesView(request, response, view.heads) === false) {
    return undefined;
  }
  const { number, hash } = request.block ?? {};
  return number === undefined || hash === undefined
    ? response
    : { ...response, verified: true, block: { number, hash } };
};

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
  request(request: RpcRequest, context: Context): Promise<RpcResponse> {
    const support = this.#byHashSupport.isByHashSupported(request, context);
    return support instanceof Promise
      ? support.then((isSupported) => this.#send(request, context, isSupported))
      : this.#send(request, context, support);
  }

  #send(request: RpcRequest, context: Context, isByHash: boolean): Promise<RpcResponse> {
    const delays = RETRY_LIMITS.node.delaysMs.values();
    const { byHash } = request;
    return isByHash && byHash !== undefined
      ? this.#sendByHash(byHash, request, context, delays)
      : this.#sendByNumber(request, context, delays, needsNoBlock(request));
  }

  /** Sends the request by hash. If the node does not know the hash or the form, sends it by number. */
  #sendByHash(byHash: Call, request: RpcRequest, context: Context, delays: Delays): Promise<RpcResponse> {
    const attempt = (): Promise<NodeAttempt> => attemptOnNode(this.#sender, byHash, request, context);
    const onOutcome = (outcome: NodeAttempt): Awaitable<RpcResponse> =>
      acceptByHash(outcome, request, context) ?? this.#sendByNumber(request, context, delays, true);
    const onError = (error: unknown): Promise<RpcResponse> => {
      if (!isByHashRequest(error, request)) {
        throw error;
      }
      return this.#sendByNumber(request, context, delays, needsNoBlock(request)).then((known) => {
        this.#byHashSupport.markUnsupported(byHash.method);
        return known;
      });
    };
    return attempt().then((first) => {
      if (!this.#hasAnnounced(first)) {
        return onOutcome(first);
      }
      const isReplaced = (): Promise<boolean> => this.#isReplaced(request);
      return this.#retryLater(first, attempt, { context, delays, isReplaced }).then(onOutcome, onError);
    }, onError);
  }

  /** Whether the node has another block. Waiting does not bring back a block that a reorganisation replaced. */
  async #isReplaced({ block }: RpcRequest): Promise<boolean> {
    const { number, hash } = block ?? {};
    return number !== undefined && hash !== undefined && (await this.#readPresence({ number, hash })) === "replaced";
  }

  /** `isOnce`: a missing block is not requested again. */
  #sendByNumber(request: RpcRequest, context: Context, delays: Delays, isOnce: boolean): Promise<RpcResponse> {
    const attempt = (): Promise<NodeAttempt> => this.#attemptByNumber(request, context);
    const onOutcome = (outcome: NodeAttempt): RpcResponse => this.#acceptByNumber(outcome, request);
    return attempt().then((first) =>
      isOnce || !this.#hasAnnounced(first)
        ? onOutcome(first)
        : this.#retryLater(first, attempt, { context, delays, isReplaced: undefined }).then(onOutcome),
    );
  }

  #acceptByNumber({ response, error, isMissing }: NodeAttempt, request: RpcRequest): RpcResponse {
    if (response === undefined) {
      throw error;
    }
    // The pool and the method decide about `null`. Any other response belongs to another block.
    if (isMissing && !isNull(response) && !RETENTION[request.retention].cachesNull) {
      throw this.#otherBranch(request);
    }
    return response;
  }

  /** Repeats the attempt while the node lacks a block that it announced, after each of the delays. */
  async #retryLater(
    first: NodeAttempt,
    attempt: () => Promise<NodeAttempt>,
    { context: { signal }, delays, isReplaced }: MissingRetry,
  ): Promise<NodeAttempt> {
    let outcome = first;
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

  /** Sends the request by number, or without a block. The response is of the node's own branch, which is then verified. */
  #attemptByNumber(request: RpcRequest, context: Context): Promise<NodeAttempt> {
    const anchor = anchorBlock(this.#node, request, context.view.heads);
    // Nothing in the response can show a branch.
    if (anchor === undefined && request.blockField === undefined && !request.nullIsError) {
      return attemptOnNode(this.#sender, request, request, context);
    }
    return this.#attemptAtAnchor(anchor, request, context);
  }

  async #attemptAtAnchor(anchor: BlockId | undefined, request: RpcRequest, context: Context): Promise<NodeAttempt> {
    const { heads } = context.view;
    // A response from before the node reached the view's branch would look right afterwards.
    const isPresent = anchor === undefined || (hasReached(this.#node, anchor) && isOnSameBranch(this.#node, heads));
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
