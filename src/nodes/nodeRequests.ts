import { type Clock, systemClock } from "../core/clock.ts";
import type { CallScope, Context } from "../core/context.ts";
import type { BlockId } from "../core/heads.ts";
import { NodeError } from "../core/node.ts";
import { RETENTION } from "../core/retention.ts";
import { RETRY_LIMITS, RETRY_RULES, retryCause } from "../core/retryPolicy.ts";
import { isNull, type RpcRequest, type RpcResponse } from "../core/rpcSource.ts";
import type { Awaitable, Call } from "../jsonrpc/call.ts";
import { ofOtherBranch, type VerifiedResponse } from "../verification/checker.ts";
import { readResponseBlock } from "../verification/responseBlock.ts";
import type { Verifier } from "../verification/verifier.ts";
import {
  anchorBlock,
  type BlockPresence,
  BlockPresences,
  ByHashSupport,
  decideBranch,
  hasReached,
  isByHashRequest,
  isOnSameBranch,
  lacksReceipts,
  matchesView,
} from "./branchCheck.ts";
import type { NodeHealth } from "./nodeHealth.ts";
import type { CallOptions } from "./nodeTransport.ts";

/** The node that requests are sent to. */
export interface RequestedNode {
  readonly name: string;
  readonly health: Pick<NodeHealth, "head" | "headHash" | "hashAt" | "announced" | "takePolled">;
  /** Sends one call once. */
  send(call: Call, scope: CallScope, options?: CallOptions): Promise<Uint8Array>;
}

/** The outcome of one sending that may be repeated: a response, or the error of a missing block. */
interface NodeAttempt {
  readonly response?: RpcResponse;
  readonly error?: NodeError;
  /** The node does not have the requested object. */
  readonly isMissing: boolean;
  /** Number of the block that the node lacks, if `isMissing`. */
  readonly block?: bigint | undefined;
}

const METHOD = Object.freeze({ fwd: "method" } as const);
const MISS = Object.freeze({ fwd: "miss" } as const);

const createResponse = (
  node: string,
  body: Uint8Array,
  verified: VerifiedResponse,
  request: RpcRequest,
): RpcResponse => {
  const { grade, isWhole, block = readResponseBlock(body, request.blockField) } = verified;
  const status = request.write ? METHOD : MISS;
  const part = verified.isPartial ? { isPartial: true } : undefined;
  const items = isWhole === undefined ? undefined : { isWhole };
  return { body, node, status, ...(block && { block }), ...(grade && { grade }), ...part, ...items };
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
export class NodeRequests {
  readonly #node: RequestedNode;
  /** Undefined if responses are not verified. */
  readonly #verifier: Verifier | undefined;
  readonly #clock: Clock;
  readonly #byHashSupport: ByHashSupport;
  readonly #presences: BlockPresences;

  constructor(node: RequestedNode, verifier: Verifier | undefined, clock: Clock = systemClock) {
    this.#node = node;
    this.#verifier = verifier?.level === "off" ? undefined : verifier;
    this.#clock = clock;
    this.#byHashSupport = new ByHashSupport(node);
    this.#presences = new BlockPresences(node);
  }

  /** Rejects with NodeError; `otherBranch` if the response is not of the view's branch, or of a node that lacks the block. */
  request(request: RpcRequest, context: Context): Promise<RpcResponse> {
    const support = this.#byHashSupport.isSupported(request, context);
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

  /**
   * Sends the request by hash. If the node does not know the hash or the form, sends it by number. A canonical block that a poll
   * has returned is not read again. A read of a client by hash is: the node may have forgotten the block.
   */
  #sendByHash(byHash: Call, request: RpcRequest, context: Context, delays: Delays): Promise<RpcResponse> {
    const attempt = (): Promise<NodeAttempt> => this.#attempt(byHash, request, context);
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
    const polled = context.bypassCache ? undefined : this.#node.health.takePolled(byHash);
    return this.#attempt(byHash, request, context, polled).then((first) => {
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
    return number !== undefined && hash !== undefined && (await this.#presences.read({ number, hash })) === "replaced";
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
      throw ofOtherBranch(this.#node, request);
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
    const { announced } = this.#node.health;
    return isMissing && block !== undefined && announced !== undefined && block <= announced;
  }

  /** Sends the request by number, or without a block. The response is of the node's own branch, which is then verified. */
  #attemptByNumber(request: RpcRequest, context: Context): Promise<NodeAttempt> {
    const anchor = anchorBlock(this.#node.health, request, context.view.heads);
    // Nothing in the response can show a branch.
    if (anchor === undefined && request.blockField === undefined && !request.nullIsError) {
      return this.#attempt(request, request, context);
    }
    return this.#attemptAtAnchor(anchor, request, context);
  }

  async #attemptAtAnchor(anchor: BlockId | undefined, request: RpcRequest, context: Context): Promise<NodeAttempt> {
    const { heads } = context.view;
    const { health } = this.#node;
    // A response from before the node reached the view's branch would look right afterwards.
    const isPresent = anchor === undefined || (hasReached(health, anchor) && isOnSameBranch(health, heads));
    const before: BlockPresence = isPresent ? "present" : await this.#presences.read(anchor);
    if (before === "replaced") {
      throw ofOtherBranch(this.#node, request);
    }
    const attempt = await this.#attempt(request, request, context);
    const { response, isMissing } = attempt;
    if (response === undefined) {
      return attempt;
    }
    const isUndecided = response.block === undefined || RETENTION[request.retention].branchAnchor === "finalized";
    const after = anchor && isUndecided ? await this.#presences.read(anchor) : undefined;
    const verdict = decideBranch({
      retention: request.retention,
      presence: after === "present" ? before : after,
      matchesView: matchesView(request, response, heads),
      isMissing,
    });
    switch (verdict) {
      case "otherBranch":
        throw ofOtherBranch(this.#node, request);
      case "missingBlock":
        return { response: { ...response, verified: false }, isMissing: true, block: anchor?.number };
      case "undecided":
        return attempt;
      default:
        return { ...attempt, response: { ...response, verified: verdict === "verified" } };
    }
  }

  /**
   * Sends `call`, one form of `request`, once, and verifies the response. Rejects with any error but that of a missing block.
   * `known`: the node has given this response before, unverified.
   */
  #attempt(call: Call, request: RpcRequest, context: Context, known?: Uint8Array): Promise<NodeAttempt> {
    const node = this.#node;
    const verifier = this.#verifier;
    const { heads } = context.view;
    const toAttempt = (body: Uint8Array, verified: VerifiedResponse): NodeAttempt => {
      const isMissing =
        (request.nullIsError === true && (isNull({ body }) || lacksReceipts(body, request, heads))) ||
        request.isComplete?.(body) === false;
      const block = request.isInKnownBlock ? heads.latest.number : request.block?.number;
      return { response: createResponse(node.name, body, verified, request), isMissing, block };
    };
    const onError = (error: unknown): NodeAttempt => {
      if (error instanceof NodeError && RETRY_RULES[retryCause(error)].node === "sameNode") {
        return { error, isMissing: true, block: request.block?.number };
      }
      throw error;
    };
    const options = { isCheckedLater: verifier !== undefined, isShared: request.write !== true };
    const answer = known === undefined ? node.send(call, context, options) : Promise.resolve(known);
    return answer.then((body) => {
      const verified = verifier?.verify({ node, call, request, context }, body) ?? {};
      return verified instanceof Promise
        ? verified.then((known) => toAttempt(body, known), onError)
        : toAttempt(body, verified);
    }, onError);
  }
}
