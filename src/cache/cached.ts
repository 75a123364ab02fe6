import type { BlockId, Heads } from "../core/heads.ts";
import { isNull } from "../core/isNull.ts";
import { RETENTION, type RetentionClass } from "../core/retention.ts";
import type { RequestContext, RpcRequest, RpcResponse, RpcSource } from "../core/rpcSource.ts";
import { traced } from "../core/trace.ts";
import { type Awaitable, whenKnown } from "../jsonrpc/awaitable.ts";
import { ownerOf } from "../limits/fairQueue.ts";
import type { CounterSeries } from "../telemetry/summedSeries.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { type CacheEntry, isCanonical, isValid, redisSeconds } from "./cacheEntry.ts";
import { requestKey } from "./cacheKey.ts";
import type { MemoryStore } from "./memoryStore.ts";
import type { NegativeCache } from "./negativeCache.ts";
import type { RedisStore } from "./redisStore.ts";
import { scanTransactionHashes } from "./scanTransactionHashes.ts";

export interface CachedOptions {
  /** Name of the chain, for metrics. */
  readonly chain: string;
  /** See `createKeyPrefix`. It is read for every request, because a chain reset changes it. */
  readonly prefix: string;
  readonly memory: MemoryStore;
  readonly redis?: RedisStore;
  readonly negativeCache: NegativeCache;
  readonly telemetry: Telemetry;
}

/** A larger response is not searched for transaction hashes, because that would block the event loop. */
const MAX_LISTED_BYTES = 4 * 1024 * 1024;

/**
 * Wraps a source with the cache: memory first, then Redis, then `source`. Caches responses by their retention class.
 * See docs/architecture.md, invariant 1.
 */
export const cached = (source: RpcSource, options: CachedOptions): RpcSource => {
  const { memory, redis, negativeCache } = options;
  const count = createLookupCounters(options);
  const storage: Storage = { memory, redis, negativeCache, countStored: createStoredCounters(options) };
  const { cacheAgeSeconds } = options.telemetry.metrics;
  const observeAge = (entry: CacheEntry) => cacheAgeSeconds.observe((Date.now() - entry.storedAtMs) / 1000);

  const findNull = (request: RpcRequest, heads: Heads): RpcResponse | undefined => {
    const response = negativeCache.get(request, heads);
    if (response !== undefined) {
      count(request.retention, "absent");
    }
    return response;
  };

  const findInRedis = async (
    key: string,
    retention: RetentionClass,
    context: RequestContext,
  ): Promise<RpcResponse | undefined> => {
    const entry = redis && (await traced(context.span, "redis get", {}, () => redis.get(key, ownerOf(context))));
    if (entry === undefined || !isValid(entry, retention, context.view.heads)) {
      return undefined;
    }
    memory.set(key, entry);
    count(retention, "redis");
    observeAge(entry);
    return { body: entry.body, status: { hit: "redis" }, ...(entry.block && { block: entry.block }) };
  };

  const fetch = (key: string, request: RpcRequest, context: RequestContext): Awaitable<RpcResponse> => {
    const { heads } = context.view;
    count(request.retention, context.bypassCache ? "bypass" : "miss");
    return whenKnown(source.request(withExpectation(request, heads, negativeCache), context), (response) => {
      if (response.status.hit !== undefined) {
        return response;
      }
      const stored = storeResponse(key, request, { heads, response }, storage);
      return { ...response, status: { ...response.status, fwd: context.bypassCache ? "request" : "miss", stored } };
    });
  };

  const readOrFetch = (key: string, request: RpcRequest, context: RequestContext): Awaitable<RpcResponse> => {
    const { retention } = request;
    if (context.bypassCache || redis === undefined || RETENTION[retention].redisSeconds === undefined) {
      return fetch(key, request, context);
    }
    return findInRedis(key, retention, context).then((hit) => hit ?? fetch(key, request, context));
  };

  return {
    request: (request, context) => {
      const { retention } = request;
      const { heads } = context.view;
      const key = requestKey(options.prefix, request, heads);
      if (key === undefined) {
        return forward(source, request, context);
      }
      if (!context.bypassCache) {
        const entry = memory.get(key);
        if (entry !== undefined && isValid(entry, retention, heads)) {
          count(retention, "memory");
          observeAge(entry);
          return entry;
        }
        const cachedNull = RETENTION[retention].cachesNull ? findNull(request, heads) : undefined;
        if (cachedNull !== undefined) {
          return cachedNull;
        }
      }
      return readOrFetch(key, request, context);
    },
  };
};

/** Requests from the source without the cache. */
const forward = (source: RpcSource, request: RpcRequest, context: RequestContext): Awaitable<RpcResponse> =>
  whenKnown(source.request(request, context), (response) => {
    if (response.status.hit !== undefined) {
      return response;
    }
    const fwd = RETENTION[request.retention].isCached ? "bypass" : "method";
    return { ...response, status: { ...response.status, fwd } };
  });

/** Marks a request for a transaction that exists, so that a `null` is retried on another node. */
const withExpectation = (request: RpcRequest, heads: Heads, negativeCache: NegativeCache): RpcRequest => {
  if (!RETENTION[request.retention].cachesNull) {
    return request;
  }
  const hash = String(request.params[0]);
  if (!negativeCache.isExpected(hash, heads)) {
    return request;
  }
  return { ...request, nullIsError: true, isInKnownBlock: negativeCache.isSealed(hash, heads) };
};

/** The places where responses are cached. */
interface Storage extends Pick<CachedOptions, "memory" | "negativeCache"> {
  readonly redis: RedisStore | undefined;
  countStored(retention: RetentionClass): void;
}

/** Caches a response if that is allowed. Returns whether it is cached. `heads` are those of the key. */
const storeResponse = (
  key: string,
  request: RpcRequest,
  { heads, response }: { readonly heads: Heads; readonly response: RpcResponse },
  storage: Storage,
): boolean => {
  const { retention } = request;
  const rule = RETENTION[retention];
  const { body } = response;
  // An unverified response is of a node that did not have the block.
  if (!(body instanceof Uint8Array) || response.verified === false) {
    return false;
  }
  if (isNull(response)) {
    return rule.cachesNull && storage.negativeCache.add(request, heads);
  }
  const entry = createEntry(request, heads, body, response);
  if (entry === undefined) {
    return false;
  }
  if (rule.listsNewTransactions && response.block && listsTransactions(request, body)) {
    storage.negativeCache.expectTransactions(scanTransactionHashes(body), response.block);
  }
  return storeEntry(key, entry, retention, storage);
};

const storeEntry = (key: string, entry: CacheEntry, retention: RetentionClass, storage: Storage): boolean => {
  const { memory, redis } = storage;
  const inMemory = memory.set(key, entry);
  const seconds = redis && redisSeconds(entry, retention);
  const inRedis = seconds !== undefined;
  if (inRedis) {
    redis?.set(key, entry, seconds);
  }
  if (inMemory || inRedis) {
    storage.countStored(retention);
  }
  return inMemory || inRedis;
};

/** Creates the cache entry, or undefined if the response must not be cached. `heads` are those of the key. */
const createEntry = (
  request: RpcRequest,
  heads: Heads,
  body: Uint8Array,
  response: RpcResponse,
): CacheEntry | undefined => {
  const { requiresVerification, blockFrom, finality } = RETENTION[request.retention];
  if (requiresVerification && response.verified !== true) {
    return undefined;
  }
  const { block } = response;
  if (blockFrom === "response" && (block === undefined || !isCanonical(block, true, heads))) {
    return undefined;
  }
  const isFinal = finality === "ofBlock" ? isFinalBlock(block, heads) : finality === "final";
  return { body, ...(block && { block }), isFinal, storedAtMs: Date.now() };
};

const isFinalBlock = (block: BlockId | undefined, { finalized }: Heads): boolean =>
  block !== undefined && finalized !== undefined && block.number <= finalized.number;

/**
 * Whether the response is a block, its receipts or its logs.
 * A node that is behind may return `null` for their transactions.
 */
const listsTransactions = ({ blockField }: RpcRequest, body: Uint8Array): boolean =>
  (blockField === "hash" || blockField === "firstBlockHash") && body.byteLength <= MAX_LISTED_BYTES;

/** The outcome of a look-up. */
type Outcome = "memory" | "redis" | "absent" | "miss" | "bypass";

/** Creates the look-up counters. Each series is created on first use. */
const createLookupCounters = ({ chain, telemetry }: CachedOptions) => {
  const counters = new Map<RetentionClass, Map<Outcome, CounterSeries>>();
  return (retention: RetentionClass, outcome: Outcome): void => {
    let ofClass = counters.get(retention);
    if (ofClass === undefined) {
      ofClass = new Map();
      counters.set(retention, ofClass);
    }
    let counter = ofClass.get(outcome);
    if (counter === undefined) {
      counter = telemetry.metrics.cacheLookups.series({ chain, class: retention, outcome });
      ofClass.set(outcome, counter);
    }
    counter.inc();
  };
};

/** Creates the counters of cached responses. Each series is created on first use. */
const createStoredCounters = ({ chain, telemetry }: CachedOptions): Storage["countStored"] => {
  const counters = new Map<RetentionClass, CounterSeries>();
  return (retention) => {
    let counter = counters.get(retention);
    if (counter === undefined) {
      counter = telemetry.metrics.cacheStored.series({ chain, class: retention });
      counters.set(retention, counter);
    }
    counter.inc();
  };
};
