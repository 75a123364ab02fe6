import { LRUCache } from "lru-cache";
import type { Context } from "../core/context.ts";
import { NodeError, type NodeErrorKind } from "../core/node.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import { ZERO_ADDRESS } from "../ethereum/hex.ts";
import { type Awaitable, createCall } from "../jsonrpc/call.ts";
import type { VerifiedNode } from "../verification/verifier.ts";

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

/** The errors about the form of a request. A missing block or a lost connection says nothing about it. */
const FORM_ERRORS: ReadonlySet<NodeErrorKind> = new Set(["invalidParams", "tagUnsupported", "unsupportedMethod"]);

/** Whether one node supports requests by block hash. The first EIP-1898 request probes the node. */
export class ByHashSupport {
  readonly #node: Pick<VerifiedNode, "send">;
  readonly #unsupported = new LRUCache<string, true>({ max: MAX_UNSUPPORTED, ttl: UNSUPPORTED_MS });
  #isSupported: boolean | undefined;
  #probing: Promise<boolean> | undefined;

  constructor(node: Pick<VerifiedNode, "send">) {
    this.#node = node;
  }

  isSupported(request: RpcRequest, context: Context): Awaitable<boolean> {
    const hash = request.block?.hash;
    if (!request.byHash || hash === undefined || this.#unsupported.has(request.byHash.method)) {
      return false;
    }
    if (!needsProbe(request)) {
      return true;
    }
    if (this.#isSupported === undefined) {
      this.#probing ??= this.#probe(hash, context).finally(() => {
        this.#probing = undefined;
      });
      return this.#probing;
    }
    return this.#isSupported;
  }

  /** Marks a by-hash method as unsupported: the node answers by number, and rejects the request by hash. */
  markUnsupported(method: string): void {
    this.#unsupported.set(method, true);
  }

  async #probe(hash: string, context: Context): Promise<boolean> {
    try {
      await this.#node.send(
        createCall("eth_getBalance", [ZERO_ADDRESS, { blockHash: hash, requireCanonical: false }]),
        context,
      );
      this.#isSupported = true;
    } catch (error) {
      if (error instanceof NodeError && FORM_ERRORS.has(error.kind)) {
        this.#isSupported = context.signal.aborted ? undefined : false;
      }
    }
    return this.#isSupported ?? false;
  }
}
