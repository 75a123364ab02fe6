import { createAgreedFetch } from "../cache/agreedFetch.ts";
import { cached } from "../cache/cached.ts";
import { ChainKeys, type EntryStore } from "../cache/cacheEntry.ts";
import { Disagreements } from "../cache/disagreements.ts";
import { HeadPrefetch } from "../cache/headPrefetch.ts";
import { NegativeCache } from "../cache/negativeCache.ts";
import { secondOrigin } from "../cache/secondOrigin.ts";
import { StatedValues } from "../cache/statedValues.ts";
import { forgetStateRead, type StateReadAt, TieredStore } from "../cache/tieredStore.ts";
import { type CallScope, ownContext } from "../core/context.ts";
import type { BlockId, HeadChange, Heads } from "../core/heads.ts";
import type { RpcSource } from "../core/rpcSource.ts";
import type { RunScript, SharedValues } from "../core/sharedValues.ts";
import type { PendingBlock } from "../core/view.ts";
import type { Upstreams } from "../heads/upstreams.ts";
import { withinBudget } from "../limits/memoryBudget.ts";
import { fullBlockRequest, prefetchRequests, receiptsOf } from "../methods/ownBlockReads.ts";
import { coalesced } from "../nodes/coalesced.ts";
import { createBatchFetch } from "../nodes/fetchStateBatch.ts";
import type { Pending } from "../pending/pending.ts";
import { StateFetcher } from "../state/fetch/stateFetcher.ts";
import type { ChainBase } from "./chainBase.ts";

export interface ReadPipeline {
  /** The cache, then request coalescing, then the nodes. Responses of a new head are prefetched. */
  readonly reads: RpcSource;
  /** The same for reads of forebay itself: they do not cause a prefetch. */
  readonly ownReads: RpcSource;
  /** Reads a whole block through the cache, because clients ask for new blocks too. */
  readonly readBlock: (block: BlockId, scope: CallScope) => Promise<Uint8Array>;
  /** Creates a reader of state values. Each has two origins with `reads.agree: 2`. A read of the first one may take this time. */
  readonly createFetcher: (timeoutMs: number) => StateFetcher;
  /** Removes a node's response that may be wrong. */
  forget(read: StateReadAt, current: Heads): void;
  /** For callers that validate cached entries themselves. */
  readonly store: TieredStore;
  /** How long values are served that no hash proves. */
  readonly stated: StatedValues;
  readonly negativeCache: NegativeCache;
  /** Undefined without Redis. */
  readonly sharedValues: SharedValues | undefined;
  readonly keys: ChainKeys;
  /** Runs scripts on keys of this chain; undefined without Redis. */
  readonly runScript: RunScript | undefined;
  /** Redis is slow if a script takes longer. */
  readonly maxScriptMs: number;
}

/** What the other parts of one chain are built on. */
export interface ChainParts extends ChainBase {
  readonly pipeline: ReadPipeline;
}

/** A script may take this number of deadlines of Redis. */
const SCRIPT_DEADLINES = 2;

const valuesIn = (store: EntryStore, keys: ChainKeys): SharedValues => ({
  get: async (key) => (await store.get(keys.prefix + key))?.body,
  set: async (key, body, seconds) =>
    store.set(keys.prefix + key, { body, isFinal: false, storedAtMs: Date.now() }, seconds),
});

const createReadBlock =
  ({ heads }: Upstreams, reads: RpcSource): ReadPipeline["readBlock"] =>
  async (block, scope) => {
    const current = heads.current();
    if (current === undefined) {
      throw new Error("no head is known");
    }
    const { body } = await reads.request(fullBlockRequest(block), ownContext("forebay", { heads: current }, scope));
    if (!(body instanceof Uint8Array)) {
      throw new Error(`block ${block.hash} is a stream`);
    }
    return body;
  };

/** Records the transactions of a new head, which a poll returned: a machine of a node that lags returns `null` for them. */
const expectHead = (
  negativeCache: NegativeCache,
  { nodes }: Upstreams,
  { heads: { latest }, to }: HeadChange,
): void => {
  const [polled] = to.length === 0 ? [] : nodes.flatMap(({ health }) => health.polledBody(latest.hash) ?? []);
  if (polled !== undefined) {
    negativeCache.expectBlock(polled, latest);
  }
};

/** Records the transactions of pending blocks once these are sealed. Clients have seen them, so that they must not become `null`. */
export const expectSealed = ({ negativeCache }: Pick<ReadPipeline, "negativeCache">, views: Pending): void => {
  let shown: readonly PendingBlock[] = [];
  views.subscribe(({ view: { heads, pending } }) => {
    for (const { number, transactionHashes } of shown) {
      const sealed = heads.at(number);
      if (sealed !== undefined) {
        negativeCache.expectTransactions(transactionHashes, sealed);
      }
    }
    shown = pending?.blocks ?? [];
  });
};

/** Creates the path of a read: see the picture of a request in docs/architecture.md. */
export const createReadPipeline = (base: ChainBase): ReadPipeline => {
  const { config, shared, upstreams, unitsOf, signal } = base;
  const { memory, redis, disk, budget, telemetry } = shared;
  const negativeCache = new NegativeCache();
  const keys = new ChainKeys(config.name, upstreams);
  const { nodes, heads, verifier } = upstreams;
  const { agree } = config.reads;
  const stated = new StatedValues({ nodes, agree });
  const disagreements = new Disagreements(config.name, telemetry);
  const cacheOptions = {
    chain: config.name,
    keys,
    memory,
    negativeCache,
    stated,
    telemetry,
    stores: [...(disk ? [disk] : []), ...(redis ? [redis] : [])],
  };
  const nodeReads = secondOrigin(withinBudget(coalesced(upstreams), budget), {
    ...{ nodes, agree, verifier, negativeCache },
    disagreements,
    receiptsOf: receiptsOf({ request: (request, context) => source.request(request, context) }),
  });
  const source: RpcSource = cached(nodeReads, cacheOptions);
  const reads = new HeadPrefetch(source, {
    requestsOf: prefetchRequests,
    contextOf: (newest) =>
      ownContext("warm-up", { heads: newest }, { signal, deadlineMs: performance.now() + config.upstream.timeoutMs }),
    log: telemetry.log,
  });
  heads.subscribe((change) => {
    expectHead(negativeCache, upstreams, change);
    reads.onChange(change);
  });
  heads.setReadInFull(() => {
    const current = heads.current();
    return current !== undefined && reads.isReadInFull(current);
  });
  const sharedValues = redis && valuesIn(redis, keys);
  const runScript: RunScript | undefined = redis && ((script, key, args) => redis.run(script, keys.prefix + key, args));
  return {
    reads,
    ownReads: source,
    readBlock: createReadBlock(upstreams, source),
    createFetcher: (timeoutMs) => {
      const fetchFrom = (asked: typeof nodes, forMs: number) => createBatchFetch({ nodes: asked, heads }, forMs);
      return new StateFetcher(createAgreedFetch({ nodes, agree, timeoutMs, fetchFrom, disagreements }), unitsOf);
    },
    forget: (read, current) => forgetStateRead(cacheOptions, read, current),
    store: new TieredStore(cacheOptions),
    ...{ keys, stated, negativeCache, sharedValues, runScript },
    maxScriptMs: SCRIPT_DEADLINES * (redis?.timeoutMs ?? 0),
  };
};
