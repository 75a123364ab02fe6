import type { BlockId, Heads } from "../core/heads.ts";
import { RETENTION, type RetentionClass } from "../core/retention.ts";
import type { QueueOwner } from "../limits/fairQueue.ts";
import { type CacheEntry, type ChainKeys, type EntryStore, requestKey, storedSeconds } from "./cacheEntry.ts";
import type { MemoryStore } from "./memoryStore.ts";

/** The tiers of the cache, with the keys of one chain. */
export interface ChainTiers {
  readonly keys: Pick<ChainKeys, "prefix">;
  readonly memory: MemoryStore;
  /** Disk, then Redis, as far as they are configured. */
  readonly stores: readonly EntryStore[];
}

/** Caches an entry in memory, and in the other tiers if its retention class is shared. Returns whether it is cached. */
export const storeEntry = (
  { memory, stores }: Omit<ChainTiers, "keys">,
  key: string,
  entry: CacheEntry,
  retention: RetentionClass,
): boolean => {
  const inMemory = memory.set(key, entry);
  const seconds = storedSeconds(entry, retention);
  if (seconds === undefined || stores.length === 0) {
    return inMemory;
  }
  for (const store of stores) {
    store.set(key, entry, seconds);
  }
  return true;
};

/** An entry, and the tier that had it. */
export interface FoundEntry {
  readonly entry: CacheEntry;
  readonly store: EntryStore;
  /** Whether it may be used now. */
  readonly isServed: boolean;
}

export interface StoreLookup {
  readonly retention: RetentionClass;
  readonly read: (store: EntryStore) => Promise<CacheEntry | undefined>;
  /** Default: any. */
  readonly isServed?: (entry: CacheEntry) => boolean;
}

/**
 * Asks the tiers below the memory, one after the other, until one has an entry that may be used. An entry is copied into memory and
 * into the tiers before its own. Without one, returns an entry that may not be used, if there is one.
 */
export const findStored = async (
  { memory, stores }: Omit<ChainTiers, "keys">,
  key: string,
  { retention, read, isServed = () => true }: StoreLookup,
): Promise<FoundEntry | undefined> => {
  let unserved: FoundEntry | undefined;
  for (const [index, store] of stores.entries()) {
    const entry = await read(store);
    if (entry === undefined) {
      continue;
    }
    if (isServed(entry)) {
      memory.set(key, entry);
      const seconds = storedSeconds(entry, retention);
      if (seconds !== undefined) {
        for (const faster of stores.slice(0, index)) {
          faster.set(key, entry, seconds);
        }
      }
      return { entry, store, isServed: true };
    }
    unserved = { entry, store, isServed: false };
  }
  return unserved;
};

/** A read of state at a block, by its canonical params without the block. */
export interface StateReadAt {
  readonly canonicalParams: string;
  readonly block: BlockId;
}

/** A block in the ring has the first class until it is final, and then the second one. */
const STATE_CLASSES = ["recentState", "final"] as const;

/**
 * Removes the cached response to a read of state at a block, in all tiers. Other processes keep it in memory. The key of a
 * recent block ends when the block is final.
 */
export const forgetStateRead = ({ keys, memory, stores }: ChainTiers, read: StateReadAt, heads: Heads): void => {
  for (const retention of STATE_CLASSES) {
    const key = requestKey(keys.prefix, { ...read, retention }, heads);
    if (key !== undefined) {
      memory.delete(key);
      if (RETENTION[retention].storedSeconds !== undefined) {
        for (const store of stores) {
          store.delete(key);
        }
      }
    }
  }
};

interface Stored {
  readonly bytes: Uint8Array;
  readonly from: "memory" | EntryStore["name"];
}

/** Reads memory, then the other tiers, by key. For callers that validate entries themselves, such as the segments of logs. */
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

  /** Caches a value, in the other tiers too if its retention class is shared. */
  set(key: string, body: Uint8Array, retention: RetentionClass, block: BlockId | undefined): void {
    const { isCached, finality } = RETENTION[retention];
    if (isCached) {
      const isFinal = finality === "final";
      const entry: CacheEntry = { body, ...(block && { block }), isFinal, storedAtMs: Date.now() };
      storeEntry(this.#tiers, this.#tiers.keys.prefix + key, entry, retention);
    }
  }

  async #getOne(key: string, owner: QueueOwner | undefined): Promise<Stored | undefined> {
    const inMemory = this.#tiers.memory.get(key);
    if (inMemory !== undefined) {
      return { bytes: inMemory.body, from: "memory" };
    }
    const read = (store: EntryStore) => store.get(key, owner);
    const found = await findStored(this.#tiers, key, { retention: "final", read });
    return found && { bytes: found.entry.body, from: found.store.name };
  }
}
