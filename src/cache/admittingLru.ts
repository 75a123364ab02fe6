import { crc32 } from "node:zlib";
import { LRUCache } from "lru-cache";

/** A power of two. A cache of 128 MiB with entries of 2 kB has as many. */
const SLOTS = 65_536;

/** Remembers about the newest 65,536 keys in 256 kB, by their hash. A newer key with the same slot replaces an older one. */
class RecentKeys {
  readonly #hashes = new Uint32Array(SLOTS);

  add(key: string): void {
    const hash = crc32(key);
    this.#hashes[hash % SLOTS] = hash;
  }

  has(key: string): boolean {
    const hash = crc32(key);
    return hash !== 0 && this.#hashes[hash % SLOTS] === hash;
  }
}

export interface AdmittingLruOptions {
  /** In the unit of the entries' sizes. */
  readonly maxSize: number;
  readonly maxEntrySize: number;
  readonly onEvict: () => void;
}

/** Share of entries that were asked for once. */
const NEW_SHARE = 1 / 8;

/**
 * A cache in which entries that are asked for once do not evict others: a segmented LRU with the memory of keys of 2Q.
 * A new entry enters a small list. The second request for its key moves it to the main list, also after an eviction.
 * Source: Johnson and Shasha, "2Q: A Low Overhead High Performance Buffer Management Replacement Algorithm" (VLDB 1994).
 */
export class AdmittingLru<V extends object> {
  readonly #main: LRUCache<string, V>;
  readonly #new: LRUCache<string, V>;
  readonly #evicted = new RecentKeys();
  readonly #maxEntrySize: number;

  constructor({ maxSize, maxEntrySize, onEvict }: AdmittingLruOptions) {
    this.#maxEntrySize = maxEntrySize;
    const dispose = (_value: V, key: string, reason: LRUCache.DisposeReason): void => {
      if (reason === "evict") {
        this.#evicted.add(key);
        onEvict();
      }
    };
    const newSize = Math.max(maxEntrySize, Math.floor(maxSize * NEW_SHARE));
    this.#new = new LRUCache({ maxSize: newSize, maxEntrySize, dispose });
    this.#main = new LRUCache({ maxSize: Math.max(maxEntrySize, maxSize - newSize), maxEntrySize, dispose });
  }

  get size(): number {
    return this.#main.calculatedSize + this.#new.calculatedSize;
  }

  get entries(): number {
    return this.#main.size + this.#new.size;
  }

  get(key: string): V | undefined {
    return this.#main.get(key) ?? this.#admit(key);
  }

  /** Returns false for an entry above `maxEntrySize`. It is not stored, and the old one with its key is removed. */
  set(key: string, value: V, size: number): boolean {
    // lru-cache updates a size only if the value changes. Delete the entry first.
    const wasMain = this.#main.delete(key);
    if (!wasMain) {
      this.#new.delete(key);
    }
    if (size > this.#maxEntrySize) {
      return false;
    }
    (wasMain || this.#evicted.has(key) ? this.#main : this.#new).set(key, value, { size });
    return true;
  }

  delete(key: string): void {
    this.#main.delete(key);
    this.#new.delete(key);
  }

  /** Moves an entry that is requested again to the main list. */
  #admit(key: string): V | undefined {
    const { value, size = 0 } = this.#new.info(key) ?? {};
    if (value !== undefined) {
      this.#new.delete(key);
      this.#main.set(key, value, { size });
    }
    return value;
  }
}
