import { LRUCache } from "lru-cache";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { CachedResponse } from "./cachedResponse.ts";
import type { CacheEntry } from "./cacheEntry.ts";

/**
 * What an entry costs beside key and body: its objects, its places in the map and in the list, and the allocator's own.
 * Held against resident memory by test/long/cache-memory.ts.
 */
const ENTRY_BYTES = 1_024;

/** One answer may not push out most of the others. */
const MAX_SHARE = 1 / 8;

/** A body that is part of a larger buffer is copied when the rest, which it would keep alive, is more than this share of it. */
const MAX_SLACK_SHARE = 1 / 16;

/** Entries bounded in bytes; what was used longest ago goes first. One for all chains. */
export interface MemoryStore {
  get(key: string): CachedResponse | undefined;
  /** False where the entry is too large to be kept. */
  set(key: string, entry: CacheEntry): boolean;
  readonly bytes: number;
  readonly entries: number;
}

export interface MemoryStoreOptions {
  /** 0 keeps nothing. */
  readonly maxBytes: number;
  readonly telemetry: Telemetry;
}

export const createMemoryStore = ({ maxBytes, telemetry }: MemoryStoreOptions): MemoryStore => {
  if (maxBytes < ENTRY_BYTES) return { get: () => undefined, set: () => false, bytes: 0, entries: 0 };
  const { cacheBytes, cacheEntries, cacheEvictions } = telemetry.metrics;
  const lru = new LRUCache<string, CachedResponse>({
    max: Math.ceil(maxBytes / ENTRY_BYTES),
    maxSize: maxBytes,
    maxEntrySize: Math.max(ENTRY_BYTES, Math.floor(maxBytes * MAX_SHARE)),
    dispose: (_entry, _key, reason) => {
      if (reason === "evict") cacheEvictions.inc();
    },
  });
  const report = () => {
    cacheBytes.set(lru.calculatedSize);
    cacheEntries.set(lru.size);
  };

  const grow = (key: string, kept: CachedResponse, bytes: number) => {
    if (lru.peek(key) !== kept) return;
    // lru-cache counts a size anew only for another value.
    lru.delete(key);
    lru.set(key, kept, { size: entryBytes(key, kept.body) + bytes });
    report();
  };

  const set = (key: string, entry: CacheEntry): boolean => {
    const body = ownBytes(entry.body);
    const kept = new CachedResponse(key, entry, body, grow);
    lru.set(key, kept, { size: entryBytes(key, body) });
    report();
    return lru.peek(key) === kept;
  };

  return {
    get: (key) => lru.get(key),
    set,
    get bytes() {
      return lru.calculatedSize;
    },
    get entries() {
      return lru.size;
    },
  };
};

const entryBytes = (key: string, body: Uint8Array): number => ENTRY_BYTES + key.length + body.buffer.byteLength;

/** The bytes without the rest of a shared buffer: a small result must not keep a whole batch's, or a pool's, alive. */
const ownBytes = (bytes: Uint8Array): Uint8Array =>
  bytes.buffer.byteLength - bytes.byteLength <= bytes.byteLength * MAX_SLACK_SHARE ? bytes : new Uint8Array(bytes);
