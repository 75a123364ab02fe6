import type { BlockId } from "../core/heads.ts";
import { RETENTION, type RetentionClass } from "../core/retention.ts";
import type { QueueOwner } from "../limits/fairQueue.ts";
import { type CacheEntry, redisSeconds } from "./cacheEntry.ts";
import type { MemoryStore } from "./memoryStore.ts";
import type { RedisStore } from "./redisStore.ts";

interface Stored {
  readonly bytes: Uint8Array;
  readonly from: "memory" | "redis";
}

/** Reads memory, then Redis, by key. For callers that validate entries themselves, such as the segments of logs. */
export interface TieredStore {
  /** Returns one value per key, in the order of the keys. Never rejects. Default of `owner`: no client. */
  get(keys: readonly string[], owner?: QueueOwner): Promise<readonly (Stored | undefined)[]>;
  /** Caches a value, in Redis too if its retention class is shared. */
  set(key: string, bytes: Uint8Array, retention: RetentionClass, block: BlockId | undefined): void;
}

export interface TieredStoreOptions {
  /** See `createKeyPrefix`. It is read for every call, because a chain reset changes it. */
  readonly prefix: string;
  readonly memory: MemoryStore;
  readonly redis?: RedisStore;
}

/** Creates the store of one chain. */
export const createTieredStore = (options: TieredStoreOptions): TieredStore => {
  const { memory, redis } = options;
  const getOne = async (key: string, owner: QueueOwner | undefined): Promise<Stored | undefined> => {
    const inMemory = memory.get(key);
    if (inMemory !== undefined) {
      return { bytes: inMemory.body, from: "memory" };
    }
    const entry = await redis?.get(key, owner);
    if (entry === undefined) {
      return undefined;
    }
    memory.set(key, entry);
    return { bytes: entry.body, from: "redis" };
  };
  return {
    get: (keys, owner) => Promise.all(keys.map((key) => getOne(options.prefix + key, owner))),
    set: (key, bytes, retention, block) => {
      const { isCached, finality } = RETENTION[retention];
      if (!isCached) {
        return;
      }
      const isFinal = finality === "final";
      const entry: CacheEntry = { body: bytes, ...(block && { block }), isFinal, storedAtMs: Date.now() };
      memory.set(options.prefix + key, entry);
      const seconds = redisSeconds(entry, retention);
      if (seconds !== undefined) {
        redis?.set(options.prefix + key, entry, seconds);
      }
    },
  };
};
