import type { BlockId } from "../core/heads.ts";
import type { Lifetime } from "../core/source.ts";
import { type Entry, isShared, redisSeconds } from "./entry.ts";
import type { Memory } from "./memory.ts";
import type { Redis } from "./redis.ts";

interface Stored {
  readonly bytes: Uint8Array;
  readonly from: "memory" | "redis";
}

/** Memory, then Redis, by key: for rooms that have their own rules of what is true, as logs have for segments. */
export interface Store {
  /** One for each key, in their order. Never rejects. */
  get(keys: readonly string[]): Promise<readonly (Stored | undefined)[]>;
  set(key: string, bytes: Uint8Array, lifetime: Lifetime, block: BlockId | undefined): void;
}

export interface StoreOptions {
  /** See `createKeyPrefix`. Read at every call: a chain may begin anew. */
  readonly prefix: string;
  readonly memory: Memory;
  readonly redis?: Redis;
}

export const createStore = (options: StoreOptions): Store => {
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
    set: (key, bytes, lifetime, block) => {
      if (lifetime === "never") return;
      const final = lifetime === "final" || lifetime === "byHash";
      const entry: Entry = { body: bytes, ...(block && { block }), final, storedAtMs: Date.now() };
      memory.set(options.prefix + key, entry);
      if (isShared(lifetime)) redis?.set(options.prefix + key, entry, redisSeconds(entry));
    },
  };
};
