import { setTimeout as sleep } from "node:timers/promises";
import { isNull } from "../core/isNull.ts";
import { NodeError } from "../core/node.ts";
import type { Answer, CallContext, Lifetime, Question } from "../core/source.ts";
import type { Call } from "../jsonrpc/call.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import { toldBlock } from "../verification/told.ts";
import type { Verifier } from "../verification/verifier.ts";
import { anchorOf, isOfView, isSilent } from "./branch.ts";
import { agrees, covers } from "./choice.ts";
import { isMissingBlock } from "./errors.ts";
import { createHashForm, isOfForm } from "./hashForm.ts";
import { createStanding } from "./standing.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

/** A node may be many machines: one of them announced the block, another has not got it yet. */
const MISSING_DELAYS_MS = [50, 100, 200];

/** A state that was read by number is not kept for its block's sake: a node may be many machines. */
const PROVEN_BY_BLOCK: ReadonlySet<Lifetime> = new Set(["head", "byTransaction"]);

/** What one sending gave: `answer` or `error`. */
interface Outcome {
  readonly answer?: Answer;
  readonly error?: NodeError;
  /** The node has not got what the question is about; `block` is the number of the block that it lacks. */
  readonly missing: boolean;
  readonly block?: bigint | undefined;
}

/** One node asked one question: in the form that proves most, and again where a block is missing that the node announced. */
export const askOf = (node: UpstreamNode, verifier?: Verifier) => {
  const hashForm = createHashForm(node);
  const standingOf = createStanding(node);

  /** The node announced the block that it lacks. */
  const shouldHave = ({ missing, block }: Outcome): boolean =>
    missing && block !== undefined && node.announced !== undefined && block <= node.announced;

  const answerOf = (body: Uint8Array, question: Question): Answer => {
    const told = toldBlock(body, question.tells);
    return {
      body,
      node: node.name,
      status: { fwd: question.write ? "method" : "miss" },
      ...(told && { block: told }),
    };
  };

  const once = async (call: Call, question: Question, context: CallContext): Promise<Outcome> => {
    const { heads } = context.view;
    try {
      const given = await node.send(call, context);
      const verified = verifier?.verify(node, call, question, given, context) ?? given;
      const body = verified instanceof Uint8Array ? verified : await verified;
      const missing = question.mustExist === true && (isNull({ body }) || isSilent(body, question, heads));
      const block = question.isSealed ? heads.latest.number : question.block?.number;
      return { answer: answerOf(body, question), missing, block };
    } catch (error) {
      if (error instanceof NodeError && error.kind === "missingData" && isMissingBlock(error.message)) {
        return { error, missing: true, block: question.block?.number };
      }
      throw error;
    }
  };

  const otherBranch = ({ method }: Question): NodeError =>
    new NodeError(
      "otherBranch",
      node.name,
      CODES.SERVER,
      `header not found: ${node.name} answers ${method} of another branch`,
    );

  /** Put by number, or naming no block: what comes is of the node's own branch, and no answer where that is not the view's. */
  const onceByNumber = async (question: Question, context: CallContext): Promise<Outcome> => {
    const { heads } = context.view;
    const anchor = anchorOf(node, question, heads);
    // What a node says before it comes to the view's branch would look right afterwards.
    const isThere = anchor === undefined || (covers(node, anchor) && agrees(node, heads));
    const before = isThere ? "held" : await standingOf(anchor);
    if (before === "replaced") throw otherBranch(question);
    const outcome = await once(question, question, context);
    const { answer } = outcome;
    if (answer === undefined) return outcome;
    const isRight = isOfView(question, answer, heads);
    const isUntold = answer.block === undefined || question.lifetime === "final";
    const after = anchor && isUntold ? await standingOf(anchor) : undefined;
    const standing = after === "held" ? before : after;
    const hasEnded = standing === "lacking" && question.lifetime === "final";
    if (standing === "replaced" || hasEnded || isRight === false) throw otherBranch(question);
    if (standing === "lacking") return { answer: { ...answer, proven: false }, missing: true, block: anchor?.number };
    // A `null` for a transaction is an answer of the view's branch; whether to believe it is not this node's to say.
    const lacksBlock = outcome.missing && question.lifetime !== "byTransaction";
    if (lacksBlock || standing === "unknown") return { ...outcome, answer: { ...answer, proven: false } };
    const isProven = isRight ?? (standing === "held" && PROVEN_BY_BLOCK.has(question.lifetime));
    return isProven ? { ...outcome, answer: { ...answer, proven: true } } : outcome;
  };

  const again = async (
    { signal }: CallContext,
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
  const byItsHash = async (call: Call, question: Question, context: CallContext): Promise<Answer | undefined> => {
    const { number, hash } = question.block ?? {};
    // A hash that a reorganisation took away does not come back by waiting.
    const isReplaced = async (): Promise<boolean> =>
      number !== undefined && hash !== undefined && (await standingOf({ number, hash })) === "replaced";
    const { answer, missing } = await again(context, () => once(call, question, context), isReplaced);
    if (missing || answer === undefined || isNull(answer)) return undefined;
    // Some nodes take a hash that they do not know for another block.
    if (isOfView(question, answer, context.view.heads) === false) return undefined;
    return number === undefined || hash === undefined ? answer : { ...answer, proven: true, block: { number, hash } };
  };

  /** As above; `refused` where the node does not take the question in this form. */
  const tryByHash = async (
    call: Call,
    question: Question,
    context: CallContext,
  ): Promise<Answer | "refused" | undefined> => {
    try {
      return await byItsHash(call, question, context);
    } catch (error) {
      if (isOfForm(error, question)) return "refused";
      throw error;
    }
  };

  return async (question: Question, context: CallContext): Promise<Answer> => {
    const byHash = (await hashForm.isTaken(question, context)) ? question.byHash : undefined;
    const given = byHash && (await tryByHash(byHash, question, context));
    if (given && given !== "refused") return given;
    const { answer, error } =
      byHash && given === undefined
        ? await onceByNumber(question, context)
        : await again(context, () => onceByNumber(question, context));
    if (answer === undefined) throw error;
    if (byHash && given === "refused") hashForm.refuse(byHash.method);
    return answer;
  };
};
