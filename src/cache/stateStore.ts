import type { CacheEntry } from "./cacheEntry.ts";
import { isStated, type StatedValues } from "./statedValues.ts";
import { type ChainTiers, storeEntry } from "./tieredStore.ts";

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
