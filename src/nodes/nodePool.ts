import { setTimeout as sleep } from "node:timers/promises";
import type { Heads } from "../core/heads.ts";
import { isNull } from "../core/isNull.ts";
import { NodeError } from "../core/node.ts";
import type { RequestContext, RpcRequest, RpcResponse, RpcSource } from "../core/rpcSource.ts";
import type { View } from "../core/view.ts";
import { CODES, RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import { isEmpty } from "../verification/responseBlock.ts";
import { isMissingBlock, isPassing, isRetryable } from "./errorKind.ts";
import { createHedge, type HedgeOptions } from "./hedge.ts";
import { hasBlock, isOnSameBranch, neededBlock, rankNodes } from "./nodeSelection.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

export interface NodePoolOptions {
  /** Times that a read is tried in all. */
  readonly attempts: number;
  readonly hedge?: HedgeOptions;
  readonly onRetry: () => void;
  readonly onHedge: () => void;
}

const FIRST_BACKOFF_MS = 100;

/** The node has not got the block (it says "nothing" as if that were the truth), or is on another branch. */
const isOutsideView = (
  node: UpstreamNode,
  question: RpcRequest,
  { body, verified }: RpcResponse,
  heads: Heads,
): boolean =>
  verified === false ||
  (verified !== true &&
    body instanceof Uint8Array &&
    isEmpty(body) &&
    (!hasBlock(node, neededBlock(question, heads)) || !isOnSameBranch(node, heads)));

/** What is known to be there is not there: another node may have it. */
const isUnexpectedNull = ({ nullIsError }: RpcRequest, answer: RpcResponse): boolean =>
  nullIsError === true && isNull(answer);

/** The nodes of a chain as one source: the best one is asked, and another where that may help. */
export const createNodePool = (nodes: readonly UpstreamNode[], options: NodePoolOptions): RpcSource => {
  const hedge = options.hedge && createHedge(options.hedge, options.onHedge);

  const candidates = (question: RpcRequest, { heads }: View): readonly UpstreamNode[] => {
    const identified = nodes.filter(({ identified }) => identified);
    const { filterOwner } = question;
    const asked = filterOwner === undefined ? identified : identified.filter(({ name }) => name === filterOwner);
    return rankNodes(asked, neededBlock(question, heads), heads);
  };

  /** While another node can still be asked, one that hangs gets half of the time that is left. */
  const within = (context: RequestContext, last: boolean): RequestContext => {
    const nowMs = performance.now();
    return last ? context : { ...context, deadlineMs: nowMs + (context.deadlineMs - nowMs) / 2 };
  };

  const askOne = (
    node: UpstreamNode,
    other: UpstreamNode | undefined,
    question: RpcRequest,
    context: RequestContext,
  ) =>
    hedge && other?.available && hasBlock(other, question.block)
      ? hedge.run(
          context.signal,
          (signal) => node.request(question, { ...context, signal }),
          (signal) => other.request(question, { ...context, signal }),
        )
      : node.request(question, context);

  const write = async (question: RpcRequest, context: RequestContext): Promise<RpcResponse> => {
    const { filterOwner } = question;
    if (filterOwner !== undefined && nodes.every(({ name }) => name !== filterOwner)) {
      throw new RpcError(CODES.SERVER, "filter not found");
    }
    const [node] = candidates(question, context.view);
    if (!node) {
      throw unavailable("no node has answered yet");
    }
    return node.request(question, context);
  };

  const read = async (question: RpcRequest, context: RequestContext): Promise<RpcResponse> => {
    const tried = new Set<UpstreamNode>();
    let failure: NodeError | undefined;
    let doubtful: RpcResponse | undefined;
    for (let attempt = 1; attempt <= options.attempts; attempt += 1) {
      const order = candidates(question, context.view);
      const [bypassCache, next] = order.filter((node) => !tried.has(node));
      if (!bypassCache && (doubtful || (failure && !isPassing(failure.kind)))) {
        break;
      }
      const node = bypassCache ?? order[0];
      if (!node) {
        throw unavailable("no node has answered yet");
      }
      if (attempt > 1) {
        options.onRetry();
      }
      if (!bypassCache) {
        await sleep(FIRST_BACKOFF_MS * 2 ** (attempt - 2), undefined, { signal: context.signal });
      }
      tried.add(node);
      try {
        const last = attempt === options.attempts || !next?.available;
        const answer = await askOne(node, next, question, within(context, last));
        const ofNoView = isOutsideView(node, question, answer, context.view.heads);
        if (!ofNoView && !isUnexpectedNull(question, answer)) {
          return answer;
        }
        // The best node's: that of one on another branch would be of no view at all.
        doubtful ??= ofNoView ? { ...answer, verified: false } : answer;
      } catch (error) {
        if (!(error instanceof NodeError) || !isRetryable(error.kind) || context.signal.aborted) {
          throw error;
        }
        if (error.kind === "missingData" && question.block && !isMissingBlock(error.message)) {
          node.recordPruned(question.block.number);
        }
        // What a node says itself tells the caller more than that another one is down.
        failure = failure?.text && !error.text ? failure : error;
      }
    }
    if (doubtful) {
      return doubtful;
    }
    throw failure ?? unavailable("no node has answered");
  };

  return { request: (question, context) => (question.write ? write(question, context) : read(question, context)) };
};
