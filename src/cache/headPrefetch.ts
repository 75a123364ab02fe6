import type { Context } from "../core/context.ts";
import type { HeadChange, Heads } from "../core/heads.ts";
import type { RpcRequest, RpcResponse, RpcSource } from "../core/rpcSource.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import type { Log } from "../telemetry/telemetry.ts";

/** The methods of the requests that may be prefetched. */
const PREFETCHED: ReadonlySet<string> = new Set(["eth_getBlockByNumber", "eth_getBlockReceipts"]);

export interface HeadPrefetchOptions {
  /** Returns the requests that clients send most for a new head. */
  readonly requestsOf: (heads: Heads) => {
    readonly receipts: RpcRequest;
    readonly block: RpcRequest;
    readonly fullBlock: RpcRequest;
  };
  readonly contextOf: (heads: Heads) => Context;
  readonly log: Log;
}

/**
 * Wraps the cached source with the prefetch of each new head: what clients read of the block before. That is its receipts, and the
 * block in its two forms. Clients that wait for the head then find it in the cache, or share the request in flight.
 */
export class HeadPrefetch implements RpcSource {
  readonly #source: RpcSource;
  readonly #options: HeadPrefetchOptions;
  /** What clients have read of the newest block, by canonical params (without the block). */
  readonly #read = new Set<string>();

  constructor(source: RpcSource, options: HeadPrefetchOptions) {
    this.#source = source;
    this.#options = options;
  }

  request(request: RpcRequest, context: Context): Awaitable<RpcResponse> {
    this.#recordUse(request, context);
    return this.#source.request(request, context);
  }

  /** Whether a client has read the newest block in full. */
  isReadInFull(heads: Heads): boolean {
    return this.#read.has(this.#options.requestsOf(heads).fullBlock.canonicalParams);
  }

  /** Prefetches the new head. Call it on every change of heads. */
  onChange({ heads, to }: HeadChange): void {
    if (to.length === 0 || this.#read.size === 0) {
      return;
    }
    const { requestsOf, contextOf, log } = this.#options;
    const { receipts, block, fullBlock } = requestsOf(heads);
    const wanted = [receipts, block, fullBlock].filter(({ canonicalParams }) => this.#read.has(canonicalParams));
    this.#read.clear();
    const context = contextOf(heads);
    for (const request of wanted) {
      Promise.try(() => this.#source.request(request, context)).catch((err: unknown) => {
        // The next client's request retries.
        log.debug({ err, method: request.method }, "head prefetch failed");
      });
    }
  }

  #recordUse({ method, block, canonicalParams }: RpcRequest, { view }: Context): void {
    if (block !== undefined && block.number === view.heads.latest.number && PREFETCHED.has(method)) {
      this.#read.add(canonicalParams);
    }
  }
}
