import type { BlockId, Heads } from "../core/heads.ts";
import { RETENTION, type RetentionClass } from "../core/retention.ts";
import type { QueueOwner } from "../limits/fairQueue.ts";
import { type CacheEntry, type ChainKeys, redisSeconds, requestKey } from "./cacheEntry.ts";
import type { MemoryStore } from "./memoryStore.ts";
import type { RedisStore } from "./redisStore.ts";
import { isStated, type StatedValues } from "./statedValues.ts";

/** The tiers of the cache, with the keys of one chain. */
export interface ChainTiers {
  readonly keys: Pick<ChainKeys, "prefix">;
  readonly memory: MemoryStore;
  readonly redis?: Pick<RedisStore, "get" | "set" | "delete">;
}

/** Caches an entry in memory, and in Redis if its retention class is shared. Returns whether it is cached. */
export const storeEntry = (
  { memory, redis }: Omit<ChainTiers, "keys">,
  key: string,
  entry: CacheEntry,
  retention: RetentionClass,
): boolean => {
  const inMemory = memory.set(key, entry);
  const seconds = redis && redisSeconds(entry, retention);
  if (seconds === undefined) {
    return inMemory;
  }
  redis?.set(key, entry, seconds);
  return true;
};

/** A read of state at a block, by its canonical params without the block. */
export interface StateReadAt {
  readonly canonicalParams: string;
  readonly block: BlockId;
}

/** A block in the ring has the first class until it is final, and then the second one. */
const STATE_CLASSES = ["recentState", "final"] as const;

/**
 * Removes the cached response to a read of state at a block, in memory and Redis. Other processes keep it in memory. The key of a
 * recent block ends when the block is final. No mark of the node ends it earlier: that would end all its values for one wrong hash.
 */
export const forgetStateRead = ({ keys, memory, redis }: ChainTiers, read: StateReadAt, heads: Heads): void => {
  for (const retention of STATE_CLASSES) {
    const key = requestKey(keys.prefix, { ...read, retention }, heads);
    if (key !== undefined) {
      memory.delete(key);
      if (RETENTION[retention].redisSeconds !== undefined) {
        redis?.delete(key);
      }
    }
  }
};

interface Stored {
  readonly bytes: Uint8Array;
  readonly from: "memory" | "redis";
}

/** Reads memory, then Redis, by key. For callers that validate entries themselves, such as the segments of logs. */
export class TieredStore {
  readonly #tiers: ChainTiers;

  constructor(tiers: ChainTiers) {
    this.#tiers = tiers;
  }

  /** Returns one value per key, in the order of the keys. Never rejects. Default of `owner`: no client. */
  get(keys: readonly string[], owner?: QueueOwner): Promise<readonly (Stored | undefined)[]> {
    const { prefix } = this.#tiers.keys;
    return Promise.all(keys.map((key) => this.#getOne(prefix + key, owner)));
  }

  /** Caches a value, in Redis too if its retention class is shared. */
  set(key: string, body: Uint8Array, retention: RetentionClass, block: BlockId | undefined): void {
    const { isCached, finality } = RETENTION[retention];
    if (isCached) {
      const isFinal = finality === "final";
      const entry: CacheEntry = { body, ...(block && { block }), isFinal, storedAtMs: Date.now() };
      storeEntry(this.#tiers, this.#tiers.keys.prefix + key, entry, retention);
    }
  }

  async #getOne(key: string, owner: QueueOwner | undefined): Promise<Stored | undefined> {
    const { memory, redis } = this.#tiers;
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
  }
}

/** A state value of a final block that a node stated. */
export interface StoredState {
  readonly value: Uint8Array;
  /** Whether the value may be used. If not, a node of another origin may confirm it. */
  readonly isServed: boolean;
  /** The origin that stated it; undefined if an earlier version stored it. */
  readonly origin: string | undefined;
}

/** State values of final blocks that replicas share. */
export class StateStore {
  readonly #tiers: ChainTiers;
  readonly #stated: StatedValues;

  constructor(tiers: ChainTiers, stated: StatedValues) {
    this.#tiers = tiers;
    this.#stated = stated;
  }

  /** Returns the origin of a node; undefined if the chain has no such node. */
  originOf(node: string): string | undefined {
    return this.#stated.sourceOf(node)?.origin;
  }

  /** Returns undefined for a value that was evicted or cannot be read. */
  async get(name: string): Promise<StoredState | undefined> {
    const { keys, memory, redis } = this.#tiers;
    const key = keys.prefix + name;
    const inMemory = memory.get(key);
    const known = inMemory && this.#toStored(inMemory);
    if (known?.isServed === true) {
      return known;
    }
    const inRedis = await redis?.get(key);
    const entry = inRedis && (await this.#stated.adopt(inRedis, false));
    if (entry === undefined) {
      return known;
    }
    memory.set(key, entry);
    return this.#toStored(entry);
  }

  /** Stores a value in the background. `isConfirmed`: nodes of two origins have stated it. */
  set(name: string, body: Uint8Array, node: string, isConfirmed: boolean): void {
    const source = this.#stated.sourceOf(node);
    const entry: CacheEntry = { body, isFinal: true, storedAtMs: Date.now(), source, isConfirmed };
    storeEntry(this.#tiers, this.#tiers.keys.prefix + name, entry, "final");
  }

  #toStored(entry: CacheEntry): StoredState | undefined {
    const isServed = !isStated(entry) || this.#stated.isServed(entry, Date.now(), true);
    return isServed || (isStated(entry) && this.#stated.isConfirmable(entry, true))
      ? { value: entry.body, isServed, origin: entry.source?.origin }
      : undefined;
  }
}
