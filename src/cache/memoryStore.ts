import { crc32 } from "node:zlib";
import { LRUCache } from "lru-cache";
import type { BlockId } from "../core/heads.ts";
import type { CacheStatus, Proof, RpcResponse } from "../core/rpcSource.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { CacheEntry, ValueSource } from "./cacheEntry.ts";

const HIT: CacheStatus = Object.freeze({ hit: "memory" });

/** An entry in memory that is also the response of each hit, so that a hit creates no object. */
class CachedResponse implements CacheEntry, RpcResponse {
  readonly status: CacheStatus = HIT;
  readonly body: Uint8Array;
  readonly block?: BlockId;
  readonly isFinal: boolean;
  readonly storedAtMs: number;
  readonly source: ValueSource | undefined;
  readonly isConfirmed: boolean | undefined;
  readonly proof: Proof | undefined;

  constructor(entry: CacheEntry, body: Uint8Array) {
    this.body = body;
    if (entry.block !== undefined) {
      this.block = entry.block;
    }
    this.isFinal = entry.isFinal;
    this.storedAtMs = entry.storedAtMs;
    this.source = entry.source;
    this.isConfirmed = entry.isConfirmed;
    this.proof = entry.proof;
  }
}

/**
 * Cost of an entry without key and body: its objects, map and list slots, and the allocator's overhead.
 * test/long/cache-memory.ts compares it with resident memory.
 */
const ENTRY_BYTES = 1_024;

/** Limit of one entry as a share of the cache, so that it does not evict most of the others. */
const MAX_SHARE = 1 / 8;

/** A body in a larger buffer is copied if the rest of the buffer exceeds this share of the body. */
const MAX_SLACK_SHARE = 1 / 16;

/** The memory tier: a cache that is limited in bytes. All chains share it. */
export class MemoryStore {
  /** Undefined if the cache is disabled. */
  readonly #lru: AdmittingLru<CachedResponse> | undefined;

  /** `maxBytes`: 0 disables the cache. */
  constructor(maxBytes: number, { metrics: { memoryCaches, cacheEvictions } }: Pick<Telemetry, "metrics">) {
    if (maxBytes < ENTRY_BYTES) {
      return;
    }
    const evictions = cacheEvictions.series({});
    this.#lru = new AdmittingLru({
      maxSize: maxBytes,
      maxEntrySize: Math.max(ENTRY_BYTES, Math.floor(maxBytes * MAX_SHARE)),
      onEvict: () => evictions.inc(),
    });
    memoryCaches.add(this);
  }

  get bytes(): number {
    return this.#lru?.size ?? 0;
  }

  get entries(): number {
    return this.#lru?.entries ?? 0;
  }

  get(key: string): CachedResponse | undefined {
    return this.#lru?.get(key);
  }

  /** Caches an entry. Returns false if it is too large. */
  set(key: string, entry: CacheEntry): boolean {
    const body = ownBytes(entry.body);
    return this.#lru?.set(key, new CachedResponse(entry, body), entryBytes(key, body)) ?? false;
  }

  delete(key: string): void {
    this.#lru?.delete(key);
  }
}

const entryBytes = (key: string, body: Uint8Array): number => ENTRY_BYTES + key.length + body.buffer.byteLength;

/**
 * Returns bytes that do not keep a much larger shared buffer alive, such as that of a whole batch.
 * Copies them if needed.
 */
const ownBytes = (bytes: Uint8Array): Uint8Array =>
  bytes.buffer.byteLength - bytes.byteLength <= bytes.byteLength * MAX_SLACK_SHARE ? bytes : new Uint8Array(bytes);

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

interface AdmittingLruOptions {
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
class AdmittingLru<V extends object> {
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
