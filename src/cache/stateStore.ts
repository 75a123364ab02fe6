import type { CacheEntry } from "./cacheEntry.ts";
import { redisSeconds } from "./cacheEntry.ts";
import type { MemoryStore } from "./memoryStore.ts";
import type { RedisStore } from "./redisStore.ts";
import { isStated, type StatedValues } from "./statedValues.ts";

/** A state value of a final block that a node stated. */
export interface StoredState {
  readonly value: Uint8Array;
  /** Whether the value may be used. If not, a node of another origin may confirm it. */
  readonly isServed: boolean;
  /** The origin that stated it; undefined if an earlier version stored it. */
  readonly origin: string | undefined;
}

/** State values of final blocks that replicas share. A value that was evicted or cannot be read is `undefined`. */
export interface StateStore {
  /** Returns the origin of a node; undefined if the chain has no such node. */
  originOf(node: string): string | undefined;
  get(key: string): Promise<StoredState | undefined>;
  /** Stores a value in the background. `isConfirmed`: nodes of two origins have stated it. */
  set(key: string, value: Uint8Array, node: string, isConfirmed: boolean): void;
}

export interface StateStoreOptions {
  /** See `createKeyPrefix`. It is read for every call, because a chain reset changes it. */
  readonly prefix: string;
  readonly memory: MemoryStore;
  readonly redis?: RedisStore;
  readonly stated: StatedValues;
}

/** Creates the store of one chain. */
export const createStateStore = (options: StateStoreOptions): StateStore => {
  const { memory, redis, stated } = options;
  const toStored = (entry: CacheEntry): StoredState | undefined => {
    const isServed = !isStated(entry) || stated.isServed(entry, Date.now(), true);
    return isServed || (isStated(entry) && stated.isConfirmable(entry, true))
      ? { value: entry.body, isServed, origin: entry.source?.origin }
      : undefined;
  };
  const getFromRedis = async (key: string): Promise<CacheEntry | undefined> => {
    const entry = await redis?.get(key);
    return entry && stated.adopt(entry, false);
  };
  return {
    originOf: (node) => stated.sourceOf(node)?.origin,
    get: async (name) => {
      const key = options.prefix + name;
      const inMemory = memory.get(key);
      const known = inMemory && toStored(inMemory);
      if (known?.isServed === true) {
        return known;
      }
      const entry = await getFromRedis(key);
      if (entry === undefined) {
        return known;
      }
      memory.set(key, entry);
      return toStored(entry);
    },
    set: (name, body, node, isConfirmed) => {
      const source = stated.sourceOf(node);
      const entry: CacheEntry = { body, isFinal: true, storedAtMs: Date.now(), source, isConfirmed };
      const seconds = redisSeconds(entry, "final");
      memory.set(options.prefix + name, entry);
      if (seconds !== undefined) {
        redis?.set(options.prefix + name, entry, seconds);
      }
    },
  };
};
