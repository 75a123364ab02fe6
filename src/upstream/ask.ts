import { setTimeout as sleep } from "node:timers/promises";
import type { Heads } from "../chain/heads.ts";
import { ZERO_ADDRESS } from "../chain/hex.ts";
import { NodeError } from "../chain/node.ts";
import type { Answer, CallContext, Question } from "../chain/source.ts";
import { type Call, createCall } from "../jsonrpc/call.ts";
import { isMissingBlock } from "./errors.ts";
import { isNull } from "./jsonScan.ts";
import { createStillHas } from "./stillHas.ts";
import { toldBlock } from "./told.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

/** A node may be many machines: one of them announced the block, another has not got it yet. */
const MISSING_DELAYS_MS = [50, 100, 200];

/** A ByHash method, and a log filter's blockHash (EIP-234), are understood everywhere; a block parameter's (EIP-1898) is not. */
const needsProbe = (question: Question): boolean =>
  question.byHash?.method === question.method && question.method !== "eth_getLogs";

interface Outcome {
  readonly body?: Uint8Array;
  readonly error?: NodeError;
  readonly missing: boolean;
}

/** One node asked one question: in the form that proves most, and again where a block is missing that the node announced. */
export const askOf = (node: UpstreamNode) => {
  let byHashSupported: boolean | undefined;
  const stillHas = createStillHas(node);
  let probing: Promise<boolean> | undefined;

  const probe = async (hash: string, context: CallContext): Promise<boolean> => {
    try {
      await node.send(
        createCall("eth_getBalance", [ZERO_ADDRESS, { blockHash: hash, requireCanonical: false }]),
        context,
      );
      byHashSupported = true;
    } catch (error) {
      // Only an error about the question itself tells; a missing block or a lost connection says nothing about the form.
      if (error instanceof NodeError && ["other", "tagUnsupported", "unsupportedMethod"].includes(error.kind)) {
        byHashSupported = context.signal.aborted ? undefined : false;
      }
    }
    return byHashSupported ?? false;
  };

  const canAskByHash = async (question: Question, context: CallContext): Promise<boolean> => {
    const hash = question.block?.hash;
    if (!question.byHash || hash === undefined) {
      return false;
    }
    if (!needsProbe(question)) {
      return true;
    }
    if (byHashSupported === undefined) {
      probing ??= probe(hash, context).finally(() => {
        probing = undefined;
      });
      return probing;
    }
    return byHashSupported;
  };

  const covers = ({ block }: Question): boolean =>
    block !== undefined && node.head !== undefined && block.number <= node.head;

  /** What one sending gave; `missing` where the node says that it has not got the block. */
  const once = async (call: Call, { mustExist }: Question, context: CallContext): Promise<Outcome> => {
    try {
      const body = await node.send(call, context);
      return { body, missing: mustExist === true && isNull(body) };
    } catch (error) {
      if (error instanceof NodeError && error.kind === "missingData" && isMissingBlock(error.message)) {
        return { error, missing: true };
      }
      throw error;
    }
  };

  const again = async (call: Call, question: Question, context: CallContext): Promise<Outcome> => {
    let outcome = await once(call, question, context);
    for (const delayMs of MISSING_DELAYS_MS) {
      if (!outcome.missing || !covers(question)) {
        break;
      }
      await sleep(delayMs, undefined, { signal: context.signal });
      outcome = await once(call, question, context);
    }
    return outcome;
  };

  const answer = (body: Uint8Array, question: Question): Answer => {
    const told = toldBlock(body, question.tells);
    const expected = question.block?.hash;
    const proven = told === undefined || expected === undefined ? undefined : told.hash === expected;
    return {
      body,
      node: node.name,
      status: { fwd: question.write ? "method" : "miss" },
      ...(told && { block: told }),
      ...(proven !== undefined && { proven }),
    };
  };

  const askedByHash = (body: Uint8Array, question: Question): Answer => {
    const given = answer(body, question);
    const { block } = question;
    // An answer of another block than the one asked for proves nothing.
    return block?.hash === undefined || (given.block !== undefined && given.block.hash !== block.hash)
      ? given
      : { ...given, proven: true, block: { number: block.number, hash: block.hash } };
  };

  /** The block whose chain an answer is of that was neither asked by hash nor tells a block; undefined where none is needed. */
  const unprovenBlock = ({ lifetime, block }: Question, { body, block: told }: Answer, heads: Heads) => {
    if (lifetime === "head" && block?.hash !== undefined) {
      return { number: block.number, hash: block.hash };
    }
    const isAbsent = lifetime === "byTransaction" && told === undefined && body instanceof Uint8Array && isNull(body);
    return isAbsent ? heads.latest : undefined;
  };

  return async (question: Question, context: CallContext): Promise<Answer> => {
    const byHash = (await canAskByHash(question, context)) ? question.byHash : undefined;
    let outcome = await again(byHash ?? question, question, context);
    if (byHash) {
      // A `null` by hash may mean that the node does not know the hash.
      if (!outcome.missing && outcome.body && !isNull(outcome.body)) {
        return askedByHash(outcome.body, question);
      }
      // Reorganised away, or lost: the caller gets what the node itself says, and nobody keeps it.
      outcome = { ...(await once(question, question, context)), missing: true };
    }
    if (!outcome.body) {
      throw outcome.error;
    }
    const given = answer(outcome.body, question);
    const unproven = unprovenBlock(question, given, context.view.heads);
    const proven = !outcome.missing && (unproven === undefined ? given.proven : await stillHas(unproven));
    return proven === undefined ? given : { ...given, proven };
  };
};
