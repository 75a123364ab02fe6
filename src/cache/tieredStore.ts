import type { BlockId } from "../core/heads.ts";
import type { RetentionClass } from "../core/rpcSource.ts";
import { type CacheEntry, isShared, redisSeconds } from "./cacheEntry.ts";
import type { MemoryStore } from "./memoryStore.ts";
import type { RedisStore } from "./redisStore.ts";

interface Stored {
  readonly bytes: Uint8Array;
  readonly from: "memory" | "redis";
}

/** Memory, then Redis, by key: for rooms that have their own rules of what is true, as logs have for segments. */
export interface TieredStore {
  /** One for each key, in their order. Never rejects. */
  get(keys: readonly string[]): Promise<readonly (Stored | undefined)[]>;
  set(key: string, bytes: Uint8Array, retention: RetentionClass, block: BlockId | undefined): void;
}

export interface TieredStoreOptions {
  /** See `createKeyPrefix`. Read at every call: a chain may begin anew. */
  readonly prefix: string;
  readonly memory: MemoryStore;
  readonly redis?: RedisStore;
}

export const createTieredStore = (options: TieredStoreOptions): TieredStore => {
  const { memory, redis } = options;
  const getOne = async (key: string): Promise<Stored | undefined> => {
    const kept = memory.get(key);
    if (kept !== undefined) return { bytes: kept.body, from: "memory" };
    const entry = await redis?.get(key);
    if (entry === undefined) return undefined;
    memory.set(key, entry);
    return { bytes: entry.body, from: "redis" };
  };
  return {
    get: (keys) => Promise.all(keys.map((key) => getOne(options.prefix + key))),
    set: (key, bytes, retention, block) => {
      if (retention === "never") return;
      const final = retention === "final" || retention === "byHash";
      const entry: CacheEntry = { body: bytes, ...(block && { block }), final, storedAtMs: Date.now() };
      memory.set(options.prefix + key, entry);
      if (isShared(retention)) redis?.set(options.prefix + key, entry, redisSeconds(entry));
    },
  };
};
