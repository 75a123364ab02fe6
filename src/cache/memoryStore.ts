import type { BlockId } from "../core/heads.ts";
import type { CacheStatus, RpcResponse } from "../core/rpcSource.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { AdmittingLru } from "./admittingLru.ts";
import type { CacheEntry } from "./cacheEntry.ts";
import type { ValueSource } from "./valueSource.ts";

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

  constructor(entry: CacheEntry, body: Uint8Array) {
    this.body = body;
    if (entry.block !== undefined) {
      this.block = entry.block;
    }
    this.isFinal = entry.isFinal;
    this.storedAtMs = entry.storedAtMs;
    this.source = entry.source;
    this.isConfirmed = entry.isConfirmed;
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
export interface MemoryStore {
  get(key: string): CachedResponse | undefined;
  /** Caches an entry. Returns false if it is too large. */
  set(key: string, entry: CacheEntry): boolean;
  delete(key: string): void;
  readonly bytes: number;
  readonly entries: number;
}

export interface MemoryStoreOptions {
  /** 0 disables the cache. */
  readonly maxBytes: number;
  readonly telemetry: Telemetry;
}

/** Creates the memory tier. */
export const createMemoryStore = ({ maxBytes, telemetry }: MemoryStoreOptions): MemoryStore => {
  if (maxBytes < ENTRY_BYTES) {
    return { get: () => undefined, set: () => false, delete: () => undefined, bytes: 0, entries: 0 };
  }
  const { memoryCaches, cacheEvictions } = telemetry.metrics;
  const evictions = cacheEvictions.series({});
  const lru = new AdmittingLru<CachedResponse>({
    maxSize: maxBytes,
    maxEntrySize: Math.max(ENTRY_BYTES, Math.floor(maxBytes * MAX_SHARE)),
    onEvict: () => evictions.inc(),
  });

  const store: MemoryStore = {
    get: (key) => lru.get(key),
    set: (key, entry) => {
      const body = ownBytes(entry.body);
      return lru.set(key, new CachedResponse(entry, body), entryBytes(key, body));
    },
    delete: (key) => lru.delete(key),
    get bytes() {
      return lru.size;
    },
    get entries() {
      return lru.entries;
    },
  };
  memoryCaches.add(store);
  return store;
};

const entryBytes = (key: string, body: Uint8Array): number => ENTRY_BYTES + key.length + body.buffer.byteLength;

/**
 * Returns bytes that do not keep a much larger shared buffer alive, such as that of a whole batch.
 * Copies them if needed.
 */
const ownBytes = (bytes: Uint8Array): Uint8Array =>
  bytes.buffer.byteLength - bytes.byteLength <= bytes.byteLength * MAX_SLACK_SHARE ? bytes : new Uint8Array(bytes);
