import type { Context } from "../core/context.ts";
import type { HeadChange, Heads } from "../core/heads.ts";
import type { RpcRequest, RpcResponse, RpcSource } from "../core/rpcSource.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import type { Log } from "../telemetry/telemetry.ts";

/** Prefetch stops if no client has read the newest block or its receipts in this time. Reads of state are no such read. */
const RECENT_USE_MS = 30_000;

/** Whether a response is a block or its receipts. */
const isBlockRead = (blockField: RpcRequest["blockField"]): boolean =>
  blockField === "hash" || blockField === "firstBlockHash";

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
 * Wraps the cached source with the prefetch of each new head: receipts, and the block in the variants that clients use.
 * Clients that wait for the head then find it in the cache, or share the request in flight.
 */
export class HeadPrefetch implements RpcSource {
  readonly #source: RpcSource;
  readonly #options: HeadPrefetchOptions;
  #lastUseMs = Number.NEGATIVE_INFINITY;
  /** Time of the last use of each variant of the newest block, by canonical params (without the block). */
  readonly #lastUses = new Map<string, number>();

  constructor(source: RpcSource, options: HeadPrefetchOptions) {
    this.#source = source;
    this.#options = options;
  }

  request(request: RpcRequest, context: Context): Awaitable<RpcResponse> {
    this.#recordUse(request, context);
    return this.#source.request(request, context);
  }

  /** Prefetches the new head. Call it on every change of heads. */
  onChange({ heads, to }: HeadChange): void {
    if (to.length === 0 || performance.now() - this.#lastUseMs > RECENT_USE_MS) {
      return;
    }
    const { requestsOf, contextOf, log } = this.#options;
    const { receipts, block, fullBlock } = requestsOf(heads);
    const variants = [block, fullBlock].filter((request) => this.#isInUse(request));
    const context = contextOf(heads);
    for (const request of [receipts, ...(variants.length > 0 ? variants : [block])]) {
      Promise.try(() => this.#source.request(request, context)).catch((err: unknown) => {
        // The next client's request retries.
        log.debug({ err, method: request.method }, "head prefetch failed");
      });
    }
  }

  #recordUse({ block, canonicalParams, blockField }: RpcRequest, { view }: Context): void {
    if (block === undefined || block.number !== view.heads.latest.number || !isBlockRead(blockField)) {
      return;
    }
    this.#lastUseMs = performance.now();
    if (blockField === "hash") {
      this.#lastUses.set(canonicalParams, this.#lastUseMs);
    }
  }

  #isInUse({ canonicalParams }: RpcRequest): boolean {
    return performance.now() - (this.#lastUses.get(canonicalParams) ?? Number.NEGATIVE_INFINITY) <= RECENT_USE_MS;
  }
}
