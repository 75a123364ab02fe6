import type { Context } from "../core/context.ts";
import type { BlockId, Heads } from "../core/heads.ts";
import { RETENTION, type RetentionClass } from "../core/retention.ts";
import type { RpcRequest, RpcResponse, RpcSource } from "../core/rpcSource.ts";
import { traced } from "../core/trace.ts";
import { hasItems, isNothing } from "../core/wholeResults.ts";
import { type Awaitable, whenKnown } from "../jsonrpc/call.ts";
import { ownerOf } from "../limits/fairQueue.ts";
import type { CounterSeries } from "../telemetry/summedSeries.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { isProvenByHash } from "../verification/verifier.ts";
import { type CacheEntry, type EntryStore, isCanonical, isValid, requestKey } from "./cacheEntry.ts";
import type { NegativeCache } from "./negativeCache.ts";
import { needsAgreement } from "./sameResult.ts";
import { isStated, type StatedValues } from "./statedValues.ts";
import { type ChainTiers, type FoundEntry, findStored, storeEntry } from "./tieredStore.ts";

export interface CachedOptions extends ChainTiers {
  /** Name of the chain, for metrics. */
  readonly chain: string;
  readonly negativeCache: NegativeCache;
  readonly stated: StatedValues;
  readonly telemetry: Telemetry;
}

class CachedSource implements RpcSource {
  readonly #source: RpcSource;
  readonly #options: CachedOptions;
  readonly #count: ReturnType<typeof createLookupCounters>;

  constructor(source: RpcSource, options: CachedOptions) {
    this.#source = source;
    this.#options = options;
    this.#count = createLookupCounters(options);
  }

  request(request: RpcRequest, context: Context): Awaitable<RpcResponse> {
    const { retention } = request;
    if (request.isFirst && this.#isInMemoryOnly(retention)) {
      this.#count(retention, "miss");
      return this.#source.request(request, context);
    }
    const { heads } = context.view;
    const key = requestKey(this.#options.keys.prefix, request, heads);
    if (key === undefined) {
      return requestUncached(this.#source, request, context);
    }
    if (context.bypassCache) {
      return this.#fetch(key, request, context);
    }
    const entry = this.#options.memory.get(key);
    if (entry !== undefined && isValid(entry, retention, heads)) {
      if (this.#isServed(entry, request, Date.now())) {
        this.#count(retention, "memory");
        // An entry in memory is the response of its hits too.
        return entry;
      }
      return this.#readOrFetch(key, request, context, entry);
    }
    const cachedNull = RETENTION[retention].cachesNull ? this.#findNull(request, heads) : undefined;
    return cachedNull ?? this.#readOrFetch(key, request, context);
  }

  #isInMemoryOnly(retention: RetentionClass): boolean {
    return this.#options.stores.length === 0 || RETENTION[retention].storedSeconds === undefined;
  }

  #isServed(entry: CacheEntry, { method }: RpcRequest, nowMs: number): boolean {
    const { stated } = this.#options;
    return !isStated(entry) || stated.isServed(entry, nowMs, stated.mustAgree && needsAgreement(method));
  }

  #findNull(request: RpcRequest, heads: Heads): RpcResponse | undefined {
    const response = this.#options.negativeCache.get(request, heads);
    if (response !== undefined) {
      this.#count(request.retention, "absent");
    }
    return response;
  }

  /** `inMemory`: an entry in memory that is not served any more. */
  #readOrFetch(key: string, request: RpcRequest, context: Context, inMemory?: CacheEntry): Awaitable<RpcResponse> {
    const { retention } = request;
    if (this.#isInMemoryOnly(retention)) {
      return this.#fetch(key, request, context, inMemory);
    }
    return this.#find(key, request, context).then((found) => {
      if (found === undefined || !found.isServed) {
        return this.#fetch(key, request, context, found?.entry ?? inMemory);
      }
      const { entry, store } = found;
      this.#count(retention, store.name);
      const { body, block, grade } = entry;
      return { body, status: { hit: store.name }, ...(block && { block }), ...(grade && { grade }) };
    });
  }

  /** Reads the tiers below the memory. */
  #find(key: string, request: RpcRequest, context: Context): Promise<FoundEntry | undefined> {
    const { method, retention } = request;
    const read = async (store: EntryStore): Promise<CacheEntry | undefined> => {
      const get = () => store.get(key, ownerOf(context.caller));
      const entry = await traced(context.span, `${store.name} get`, {}, get);
      return entry === undefined || !isValid(entry, retention, context.view.heads)
        ? undefined
        : this.#options.stated.importEntry(entry, isProvenByHash(method));
    };
    const isServed = (entry: CacheEntry) => this.#isServed(entry, request, Date.now());
    return findStored(this.#options, key, { retention, read, isServed });
  }

  /** `earlier`: an entry that is not served any more. */
  #fetch(key: string, request: RpcRequest, context: Context, earlier?: CacheEntry): Awaitable<RpcResponse> {
    const { heads } = context.view;
    const isBypass = context.bypassCache;
    this.#count(request.retention, isBypass ? "bypass" : "miss");
    const expected =
      earlier !== undefined && isStated(earlier)
        ? { ...request, earlier }
        : withExpectation(request, heads, this.#options.negativeCache);
    return whenKnown(this.#source.request(expected, context), (response) => {
      if (response.status.hit !== undefined) {
        return response;
      }
      const stored = this.#store(key, request, { heads, response, isBypass });
      return { ...response, status: { ...response.status, fwd: isBypass ? "request" : "miss", stored } };
    });
  }

  /** Caches a response if that is allowed. Returns whether it is cached. */
  #store(key: string, request: RpcRequest, received: Received): boolean {
    const { heads, response, isBypass = false } = received;
    const { negativeCache, stated } = this.#options;
    const { retention } = request;
    const rule = RETENTION[retention];
    const { body } = response;
    // The node of an unverified response may lack the block.
    if (!(body instanceof Uint8Array) || response.verified === false) {
      return false;
    }
    if (isNothing(request.method, body)) {
      return rule.cachesNull && negativeCache.add(request, heads);
    }
    if (hasItems(request.method) && response.isWhole !== true) {
      return false;
    }
    const entry = createEntry(request, body, received, stated);
    if (entry === undefined || (isBypass && this.#isAgreedInMemory(key, entry))) {
      return false;
    }
    if (rule.listsNewTransactions && response.block && listsTransactions(request)) {
      negativeCache.expectBlock(body, response.block);
    }
    return storeEntry(this.#options, key, entry, retention);
  }

  /** Whether two origins have stated the value that the memory has. The statement of one node does not replace it. */
  #isAgreedInMemory(key: string, entry: CacheEntry): boolean {
    const { memory, stated } = this.#options;
    const known = isStated(entry) ? memory.get(key) : undefined;
    return known?.isAgreed === true && isStated(known) && stated.isServed(known, entry.storedAtMs, false);
  }
}

/**
 * Wraps a source with the cache: memory first, then disk and Redis, then `source`. Caches responses by their retention class.
 * See docs/architecture.md, invariant 1.
 */
export const cached = (source: RpcSource, options: CachedOptions): RpcSource => new CachedSource(source, options);

/** Requests a response that the cache neither has nor stores. */
const requestUncached = (source: RpcSource, request: RpcRequest, context: Context): Awaitable<RpcResponse> =>
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

interface Received {
  /** The heads of the key. */
  readonly heads: Heads;
  readonly response: RpcResponse;
  /** Whether the cache was not read: see `bypassCache` of Context. */
  readonly isBypass?: boolean;
}

/** Creates the cache entry, or undefined if the response must not be cached. */
const createEntry = (
  request: RpcRequest,
  body: Uint8Array,
  { heads, response }: Received,
  stated: StatedValues,
): CacheEntry | undefined => {
  const { requiresVerification, blockFrom, finality } = RETENTION[request.retention];
  if (requiresVerification && response.verified !== true) {
    return undefined;
  }
  const { block, isAgreed, grade } = response;
  if (blockFrom === "response" && (block === undefined || !isCanonical(block, true, heads))) {
    return undefined;
  }
  const isFinal = finality === "ofBlock" ? isFinalBlock(block, heads) : finality === "final";
  const isProven = isProvenByHash(request.method) && isAgreed !== false;
  const source = isProven ? undefined : stated.sourceOf(response.node);
  return { body, ...(block && { block }), isFinal, storedAtMs: Date.now(), source, isAgreed, grade };
};

const isFinalBlock = (block: BlockId | undefined, { finalized }: Heads): boolean =>
  block !== undefined && finalized !== undefined && block.number <= finalized.number;

/**
 * Whether the response is a block, its receipts or its logs.
 * A node that is behind may return `null` for their transactions.
 */
const listsTransactions = ({ blockField }: RpcRequest): boolean =>
  blockField === "hash" || blockField === "firstBlockHash";

/** The outcome of a look-up. */
type Outcome = "memory" | EntryStore["name"] | "absent" | "miss" | "bypass";

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
