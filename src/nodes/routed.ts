import { setTimeout as sleep } from "node:timers/promises";
import type { Heads } from "../core/heads.ts";
import { isNull } from "../core/isNull.ts";
import { NodeError } from "../core/node.ts";
import type { Answer, CallContext, Question, Source } from "../core/source.ts";
import type { View } from "../core/view.ts";
import { CODES, RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import { isEmpty } from "../verification/told.ts";
import { agrees, covers, neededBlock, ranked } from "./choice.ts";
import { isMissingBlock, isPassing, isRetryable } from "./errors.ts";
import { createHedge, type HedgeOptions } from "./hedge.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

export interface RoutedOptions {
  /** Times that a read is tried in all. */
  readonly attempts: number;
  readonly hedge?: HedgeOptions;
  readonly onRetry: () => void;
  readonly onHedge: () => void;
}

const FIRST_BACKOFF_MS = 100;

/** The node has not got the block (it says "nothing" as if that were the truth), or is on another branch. */
const isOfNoView = (node: UpstreamNode, question: Question, { body, proven }: Answer, heads: Heads): boolean =>
  proven === false ||
  (proven !== true &&
    body instanceof Uint8Array &&
    isEmpty(body) &&
    (!covers(node, neededBlock(question, heads)) || !agrees(node, heads)));

/** What is known to be there is not there: another node may have it. */
const isLacking = ({ mustExist }: Question, answer: Answer): boolean => mustExist === true && isNull(answer);

/** The nodes of a chain as one source: the best one is asked, and another where that may help. */
export const routed = (nodes: readonly UpstreamNode[], options: RoutedOptions): Source => {
  const hedge = options.hedge && createHedge(options.hedge, options.onHedge);

  const candidates = (question: Question, { heads }: View): readonly UpstreamNode[] => {
    const identified = nodes.filter(({ identified }) => identified);
    const { filterOwner } = question;
    const asked = filterOwner === undefined ? identified : identified.filter(({ name }) => name === filterOwner);
    return ranked(asked, neededBlock(question, heads), heads);
  };

  /** While another node can still be asked, one that hangs gets half of the time that is left. */
  const within = (context: CallContext, last: boolean): CallContext => {
    const nowMs = performance.now();
    return last ? context : { ...context, deadlineMs: nowMs + (context.deadlineMs - nowMs) / 2 };
  };

  const askOne = (node: UpstreamNode, other: UpstreamNode | undefined, question: Question, context: CallContext) =>
    hedge && other?.available && covers(other, question.block)
      ? hedge.run(
          context.signal,
          (signal) => node.request(question, { ...context, signal }),
          (signal) => other.request(question, { ...context, signal }),
        )
      : node.request(question, context);

  const write = async (question: Question, context: CallContext): Promise<Answer> => {
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

  const read = async (question: Question, context: CallContext): Promise<Answer> => {
    const tried = new Set<UpstreamNode>();
    let failure: NodeError | undefined;
    let doubtful: Answer | undefined;
    for (let attempt = 1; attempt <= options.attempts; attempt += 1) {
      const order = candidates(question, context.view);
      const [fresh, next] = order.filter((node) => !tried.has(node));
      if (!fresh && (doubtful || (failure && !isPassing(failure.kind)))) {
        break;
      }
      const node = fresh ?? order[0];
      if (!node) {
        throw unavailable("no node has answered yet");
      }
      if (attempt > 1) {
        options.onRetry();
      }
      if (!fresh) {
        await sleep(FIRST_BACKOFF_MS * 2 ** (attempt - 2), undefined, { signal: context.signal });
      }
      tried.add(node);
      try {
        const last = attempt === options.attempts || !next?.available;
        const answer = await askOne(node, next, question, within(context, last));
        const ofNoView = isOfNoView(node, question, answer, context.view.heads);
        if (!ofNoView && !isLacking(question, answer)) {
          return answer;
        }
        // The best node's: that of one on another branch would be of no view at all.
        doubtful ??= ofNoView ? { ...answer, proven: false } : answer;
      } catch (error) {
        if (!(error instanceof NodeError) || !isRetryable(error.kind) || context.signal.aborted) {
          throw error;
        }
        if (error.kind === "missingData" && question.block && !isMissingBlock(error.message)) {
          node.lacks(question.block.number);
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
