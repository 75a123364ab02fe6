import { setTimeout as sleep } from "node:timers/promises";
import { isNull } from "../core/isNull.ts";
import { NodeError } from "../core/node.ts";
import type { RequestContext, RetentionClass, RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import type { Call } from "../jsonrpc/call.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import { readResponseBlock } from "../verification/responseBlock.ts";
import type { Verifier } from "../verification/verifier.ts";
import { createBlockPresence } from "./blockPresence.ts";
import { anchorBlock, lacksReceipts, matchesView } from "./branchCheck.ts";
import { createByHashSupport, isByHashRequest } from "./byHashSupport.ts";
import { isMissingBlock } from "./errorKind.ts";
import { hasBlock, isOnSameBranch } from "./nodeSelection.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

/** A node may be many machines: one of them announced the block, another has not got it yet. */
const MISSING_DELAYS_MS = [50, 100, 200];

/** A state that was read by number is not kept for its block's sake: a node may be many machines. */
const PROVEN_BY_BLOCK: ReadonlySet<RetentionClass> = new Set(["head", "byTransaction"]);

/** What one sending gave: `answer` or `error`. */
interface Outcome {
  readonly answer?: RpcResponse;
  readonly error?: NodeError;
  /** The node has not got what the question is about; `block` is the number of the block that it lacks. */
  readonly missing: boolean;
  readonly block?: bigint | undefined;
}

/** One node asked one question: in the form that proves most, and again where a block is missing that the node announced. */
export const requestVerified = (node: UpstreamNode, verifier?: Verifier) => {
  const hashForm = createByHashSupport(node);
  const standingOf = createBlockPresence(node);

  /** The node announced the block that it lacks. */
  const shouldHave = ({ missing, block }: Outcome): boolean =>
    missing && block !== undefined && node.announced !== undefined && block <= node.announced;

  const answerOf = (body: Uint8Array, question: RpcRequest): RpcResponse => {
    const told = readResponseBlock(body, question.blockField);
    return {
      body,
      node: node.name,
      status: { fwd: question.write ? "method" : "miss" },
      ...(told && { block: told }),
    };
  };

  const once = async (call: Call, question: RpcRequest, context: RequestContext): Promise<Outcome> => {
    const { heads } = context.view;
    try {
      const given = await node.send(call, context);
      const verified = verifier?.verify(node, call, question, given, context) ?? given;
      const body = verified instanceof Uint8Array ? verified : await verified;
      const missing = question.nullIsError === true && (isNull({ body }) || lacksReceipts(body, question, heads));
      const block = question.isInKnownBlock ? heads.latest.number : question.block?.number;
      return { answer: answerOf(body, question), missing, block };
    } catch (error) {
      if (error instanceof NodeError && error.kind === "missingData" && isMissingBlock(error.message)) {
        return { error, missing: true, block: question.block?.number };
      }
      throw error;
    }
  };

  const otherBranch = ({ method }: RpcRequest): NodeError =>
    new NodeError("otherBranch", node.name, `header not found: ${node.name} answers ${method} of another branch`, {
      code: CODES.SERVER,
    });

  /** Put by number, or naming no block: what comes is of the node's own branch, and no answer where that is not the view's. */
  const onceByNumber = async (question: RpcRequest, context: RequestContext): Promise<Outcome> => {
    const { heads } = context.view;
    const anchor = anchorBlock(node, question, heads);
    // What a node says before it comes to the view's branch would look right afterwards.
    const isThere = anchor === undefined || (hasBlock(node, anchor) && isOnSameBranch(node, heads));
    const before = isThere ? "held" : await standingOf(anchor);
    if (before === "replaced") throw otherBranch(question);
    const outcome = await once(question, question, context);
    const { answer } = outcome;
    if (answer === undefined) return outcome;
    const isRight = matchesView(question, answer, heads);
    const isUntold = answer.block === undefined || question.retention === "final";
    const after = anchor && isUntold ? await standingOf(anchor) : undefined;
    const standing = after === "held" ? before : after;
    const hasEnded = standing === "lacking" && question.retention === "final";
    if (standing === "replaced" || hasEnded || isRight === false) throw otherBranch(question);
    if (standing === "lacking") return { answer: { ...answer, verified: false }, missing: true, block: anchor?.number };
    // A `null` for a transaction is an answer of the view's branch; whether to believe it is not this node's to say.
    const lacksBlock = outcome.missing && question.retention !== "byTransaction";
    if (lacksBlock || standing === "unknown") return { ...outcome, answer: { ...answer, verified: false } };
    const isVerified = isRight ?? (standing === "held" && PROVEN_BY_BLOCK.has(question.retention));
    return isVerified ? { ...outcome, answer: { ...answer, verified: true } } : outcome;
  };

  const again = async (
    { signal }: RequestContext,
    send: () => Promise<Outcome>,
    isReplaced: () => Promise<boolean> = async () => false,
  ): Promise<Outcome> => {
    let outcome = await send();
    for (const delayMs of MISSING_DELAYS_MS) {
      if (!shouldHave(outcome) || (await isReplaced())) {
        break;
      }
      await sleep(delayMs, undefined, { signal });
      outcome = await send();
    }
    return outcome;
  };

  /** An answer to the question by hash; undefined where the node does not know the hash, or may not (`null`). */
  const byItsHash = async (
    call: Call,
    question: RpcRequest,
    context: RequestContext,
  ): Promise<RpcResponse | undefined> => {
    const { number, hash } = question.block ?? {};
    // A hash that a reorganisation took away does not come back by waiting.
    const isReplaced = async (): Promise<boolean> =>
      number !== undefined && hash !== undefined && (await standingOf({ number, hash })) === "replaced";
    const { answer, missing } = await again(context, () => once(call, question, context), isReplaced);
    if (missing || answer === undefined || isNull(answer)) return undefined;
    // Some nodes take a hash that they do not know for another block.
    if (matchesView(question, answer, context.view.heads) === false) return undefined;
    return number === undefined || hash === undefined ? answer : { ...answer, verified: true, block: { number, hash } };
  };

  /** As above; `refused` where the node does not take the question in this form. */
  const tryByHash = async (
    call: Call,
    question: RpcRequest,
    context: RequestContext,
  ): Promise<RpcResponse | "refused" | undefined> => {
    try {
      return await byItsHash(call, question, context);
    } catch (error) {
      if (isByHashRequest(error, question)) return "refused";
      throw error;
    }
  };

  return async (question: RpcRequest, context: RequestContext): Promise<RpcResponse> => {
    const byHash = (await hashForm.isByHashSupported(question, context)) ? question.byHash : undefined;
    const given = byHash && (await tryByHash(byHash, question, context));
    if (given && given !== "refused") return given;
    const { answer, error } =
      byHash && given === undefined
        ? await onceByNumber(question, context)
        : await again(context, () => onceByNumber(question, context));
    if (answer === undefined) throw error;
    if (byHash && given === "refused") hashForm.markUnsupported(byHash.method);
    return answer;
  };
};
