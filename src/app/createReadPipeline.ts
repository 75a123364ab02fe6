import { cached } from "../cache/cached.ts";
import { createKeyPrefix } from "../cache/cacheKey.ts";
import { prefetched } from "../cache/headPrefetch.ts";
import type { MemoryStore } from "../cache/memoryStore.ts";
import { createNegativeCache, type NegativeCache } from "../cache/negativeCache.ts";
import type { RedisStore } from "../cache/redisStore.ts";
import { createTieredStore, type TieredStore } from "../cache/tieredStore.ts";
import type { ChainConfig } from "../config/schema.ts";
import type { RpcSource } from "../core/rpcSource.ts";
import type { RunScript } from "../core/runScript.ts";
import { type Hash, ZERO_HASH } from "../ethereum/hex.ts";
import { prefetchRequests } from "../methods/prefetchRequests.ts";
import { coalesced } from "../nodes/requestCoalescer.ts";
import type { SharedValues } from "../pending/sharedNonces.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Upstreams } from "./upstreams.ts";

/** The key prefix of one chain. It is built again only after a reset of the chain. */
const createPrefixes = () => {
  let last: { readonly hash: Hash; readonly prefix: string } = { hash: ZERO_HASH, prefix: "" };
  return ({ chainId, hash }: Upstreams["genesis"]): string => {
    if (last.hash !== hash) last = { hash, prefix: createKeyPrefix(chainId, hash) };
    return last.prefix;
  };
};

/** What keeps answers, of all chains. */
export interface CacheTiers {
  readonly memory: MemoryStore;
  readonly redis: RedisStore | undefined;
  readonly telemetry: Telemetry;
}

export interface ReadPipeline {
  /** Cache in front of shared requests in front of the nodes; a new head's answers are fetched ahead. */
  readonly reads: RpcSource;
  /** For rooms that have their own rules of what is true. */
  readonly store: TieredStore;
  readonly absent: NegativeCache;
  /** Undefined where there is no Redis. */
  readonly sharedValues: SharedValues | undefined;
  /** Runs scripts on keys of this chain; undefined where there is no Redis. */
  readonly runScript: RunScript | undefined;
}

export const createReadPipeline = (
  config: ChainConfig,
  kept: CacheTiers,
  upstreams: Upstreams,
  signal: AbortSignal,
): ReadPipeline => {
  const { memory, redis, telemetry } = kept;
  const prefixOf = createPrefixes();
  const absent = createNegativeCache();
  const keeping = {
    chain: config.name,
    get prefix() {
      return prefixOf(upstreams.genesis);
    },
    memory,
    absent,
    telemetry,
    ...(redis && { redis }),
  };
  const source = cached(coalesced(upstreams), keeping);
  const reads = prefetched(source, {
    requestsOf: prefetchRequests,
    contextOf: (heads) => ({
      view: { heads },
      signal,
      deadlineMs: performance.now() + config.upstream.timeoutMs,
      clientId: "warm-up",
      bypassCache: false,
    }),
    log: telemetry.log,
  });
  upstreams.heads.subscribe(reads.onChange);
  const sharedValues = redis && {
    get: async (key: string) => (await redis.get(keeping.prefix + key))?.body,
    set: (key: string, body: Uint8Array, seconds: number) =>
      redis.set(keeping.prefix + key, { body, final: false, storedAtMs: Date.now() }, seconds),
  };
  const runScript: RunScript | undefined =
    redis && ((script, key, args) => redis.run(script, keeping.prefix + key, args));
  return { reads, store: createTieredStore(keeping), absent, sharedValues, runScript };
};
