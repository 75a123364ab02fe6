import type { HeadChange, Heads } from "../core/heads.ts";
import type { RequestContext, RpcRequest, RpcSource } from "../core/rpcSource.ts";
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
  readonly contextOf: (heads: Heads) => RequestContext;
  readonly log: Log;
}

export interface HeadPrefetch extends RpcSource {
  /** Prefetches the new head. Call it on every change of heads. */
  onChange(change: HeadChange): void;
}

/**
 * Wraps the cached source with the prefetch of each new head: receipts, and the block in the variants that clients use.
 * Clients that wait for the head then find it in the cache, or share the request in flight.
 */
export const prefetched = (source: RpcSource, { requestsOf, contextOf, log }: HeadPrefetchOptions): HeadPrefetch => {
  let lastUseMs = Number.NEGATIVE_INFINITY;
  /** Time of the last use of each variant of the newest block, by canonical params (without the block). */
  const lastUses = new Map<string, number>();

  const recordUse = ({ block, canonicalParams, blockField }: RpcRequest, { view }: RequestContext): void => {
    if (block === undefined || block.number !== view.heads.latest.number || !isBlockRead(blockField)) {
      return;
    }
    lastUseMs = performance.now();
    if (blockField === "hash") {
      lastUses.set(canonicalParams, lastUseMs);
    }
  };
  const isInUse = ({ canonicalParams }: RpcRequest): boolean =>
    performance.now() - (lastUses.get(canonicalParams) ?? Number.NEGATIVE_INFINITY) <= RECENT_USE_MS;

  return {
    request: (request, context) => {
      recordUse(request, context);
      return source.request(request, context);
    },
    onChange: ({ heads, to }) => {
      if (to.length === 0 || performance.now() - lastUseMs > RECENT_USE_MS) {
        return;
      }
      const { receipts, block, fullBlock } = requestsOf(heads);
      const variants = [block, fullBlock].filter(isInUse);
      const context = contextOf(heads);
      for (const request of [receipts, ...(variants.length > 0 ? variants : [block])]) {
        Promise.try(() => source.request(request, context)).catch((err: unknown) => {
          // The next client's request retries.
          log.debug({ err, method: request.method }, "head prefetch failed");
        });
      }
    },
  };
};
