import { LRUCache } from "lru-cache";
import { NodeError } from "../core/node.ts";
import type { CallContext, Question } from "../core/source.ts";
import { ZERO_ADDRESS } from "../ethereum/hex.ts";
import { createCall } from "../jsonrpc/call.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

/** Whether one node takes questions by a block's hash. */
export interface HashForm {
  isTaken(question: Question, context: CallContext): Promise<boolean>;
  /** The node knows this by number, and does not take the method that asks it by hash. */
  refuse(method: string): void;
}

/** One of several machines may have refused: another one is tried after this. */
const REFUSED_MS = 600_000;
const MAX_REFUSED = 100;

/** A ByHash method, and a log filter's blockHash (EIP-234), are understood everywhere; a block parameter's (EIP-1898) is not. */
const needsProbe = (question: Question): boolean =>
  question.byHash?.method === question.method && question.method !== "eth_getLogs";

/** The node may know the question, but not put like this. */
export const isOfForm = (error: unknown, { method, byHash }: Question): boolean => {
  if (!(error instanceof NodeError)) return false;
  if (error.kind === "unsupportedMethod") return byHash?.method !== method;
  return error.kind === "tagUnsupported" || (error.kind === "other" && error.code === CODES.INVALID_PARAMS);
};

export const createHashForm = (node: Pick<UpstreamNode, "send">): HashForm => {
  let isSupported: boolean | undefined;
  const refused = new LRUCache<string, true>({ max: MAX_REFUSED, ttl: REFUSED_MS });
  let probing: Promise<boolean> | undefined;

  const probe = async (hash: string, context: CallContext): Promise<boolean> => {
    try {
      await node.send(
        createCall("eth_getBalance", [ZERO_ADDRESS, { blockHash: hash, requireCanonical: false }]),
        context,
      );
      isSupported = true;
    } catch (error) {
      // Only an error about the question itself tells; a missing block or a lost connection says nothing about the form.
      if (error instanceof NodeError && ["other", "tagUnsupported", "unsupportedMethod"].includes(error.kind)) {
        isSupported = context.signal.aborted ? undefined : false;
      }
    }
    return isSupported ?? false;
  };

  const isTaken = async (question: Question, context: CallContext): Promise<boolean> => {
    const hash = question.block?.hash;
    if (!question.byHash || hash === undefined || refused.has(question.byHash.method)) {
      return false;
    }
    if (!needsProbe(question)) {
      return true;
    }
    if (isSupported === undefined) {
      probing ??= probe(hash, context).finally(() => {
        probing = undefined;
      });
      return probing;
    }
    return isSupported;
  };

  return { isTaken, refuse: (method) => refused.set(method, true) };
};
