import { LRUCache } from "lru-cache";
import type { Context } from "../core/context.ts";
import { NodeError } from "../core/node.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import { ZERO_ADDRESS } from "../ethereum/hex.ts";
import type { Awaitable } from "../jsonrpc/awaitable.ts";
import { createCall } from "../jsonrpc/call.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

/** Whether one node supports requests by block hash. */
export interface ByHashSupport {
  isByHashSupported(request: RpcRequest, context: Context): Awaitable<boolean>;
  /** Marks a by-hash method as unsupported: the node answers by number, and rejects the request by hash. */
  markUnsupported(method: string): void;
}

/** Only one of several machines behind the URL may lack support, so that the mark expires. */
const UNSUPPORTED_MS = 600_000;
const MAX_UNSUPPORTED = 100;

/** Every node supports ByHash methods and a log filter's blockHash (EIP-234). Not every node supports EIP-1898. */
const needsProbe = (request: RpcRequest): boolean =>
  request.byHash?.method === request.method && request.method !== "eth_getLogs";

/** Whether the error is about the form of the request: the node may support the same request by number. */
export const isByHashRequest = (error: unknown, { method, byHash }: RpcRequest): boolean => {
  if (!(error instanceof NodeError)) {
    return false;
  }
  if (error.kind === "unsupportedMethod") {
    return byHash?.method !== method;
  }
  return error.kind === "tagUnsupported" || error.kind === "invalidParams";
};

/** Creates the check whether a node supports requests by block hash. The first EIP-1898 request probes the node. */
export const createByHashSupport = (node: Pick<UpstreamNode, "send">): ByHashSupport => {
  let isSupported: boolean | undefined;
  const unsupported = new LRUCache<string, true>({ max: MAX_UNSUPPORTED, ttl: UNSUPPORTED_MS });
  let probing: Promise<boolean> | undefined;

  const probe = async (hash: string, context: Context): Promise<boolean> => {
    try {
      await node.send(
        createCall("eth_getBalance", [ZERO_ADDRESS, { blockHash: hash, requireCanonical: false }]),
        context,
      );
      isSupported = true;
    } catch (error) {
      // Only errors about the request's form count. A missing block or a lost connection decides nothing.
      if (error instanceof NodeError && ["invalidParams", "tagUnsupported", "unsupportedMethod"].includes(error.kind)) {
        isSupported = context.signal.aborted ? undefined : false;
      }
    }
    return isSupported ?? false;
  };

  const isByHashSupported = (request: RpcRequest, context: Context): Awaitable<boolean> => {
    const hash = request.block?.hash;
    if (!request.byHash || hash === undefined || unsupported.has(request.byHash.method)) {
      return false;
    }
    if (!needsProbe(request)) {
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

  return { isByHashSupported, markUnsupported: (method) => unsupported.set(method, true) };
};
