import { LRUCache } from "lru-cache";
import { NodeError } from "../core/node.ts";
import type { RequestContext, RpcRequest } from "../core/rpcSource.ts";
import { ZERO_ADDRESS } from "../ethereum/hex.ts";
import { createCall } from "../jsonrpc/call.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

/** Whether one node takes questions by a block's hash. */
export interface ByHashSupport {
  isByHashSupported(question: RpcRequest, context: RequestContext): Promise<boolean>;
  /** The node knows this by number, and does not take the method that asks it by hash. */
  markUnsupported(method: string): void;
}

/** One of several machines may have refused: another one is tried after this. */
const REFUSED_MS = 600_000;
const MAX_REFUSED = 100;

/** A ByHash method, and a log filter's blockHash (EIP-234), are understood everywhere; a block parameter's (EIP-1898) is not. */
const needsProbe = (question: RpcRequest): boolean =>
  question.byHash?.method === question.method && question.method !== "eth_getLogs";

/** The node may know the question, but not put like this. */
export const isByHashRequest = (error: unknown, { method, byHash }: RpcRequest): boolean => {
  if (!(error instanceof NodeError)) return false;
  if (error.kind === "unsupportedMethod") return byHash?.method !== method;
  return error.kind === "tagUnsupported" || (error.kind === "other" && error.code === CODES.INVALID_PARAMS);
};

export const createByHashSupport = (node: Pick<UpstreamNode, "send">): ByHashSupport => {
  let isSupported: boolean | undefined;
  const refused = new LRUCache<string, true>({ max: MAX_REFUSED, ttl: REFUSED_MS });
  let probing: Promise<boolean> | undefined;

  const probe = async (hash: string, context: RequestContext): Promise<boolean> => {
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

  const isByHashSupported = async (question: RpcRequest, context: RequestContext): Promise<boolean> => {
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

  return { isByHashSupported, markUnsupported: (method) => refused.set(method, true) };
};
