import { LRUCache } from "lru-cache";
import type { Grade } from "../core/grade.ts";
import type { BlockId } from "../core/heads.ts";
import type { CacheStatus, RpcResponse } from "../core/rpcSource.ts";
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
  readonly isAgreed: boolean | undefined;
  readonly grade: Grade | undefined;

  constructor(entry: CacheEntry, body: Uint8Array) {
    this.body = body;
    if (entry.block !== undefined) {
      this.block = entry.block;
    }
    this.isFinal = entry.isFinal;
    this.storedAtMs = entry.storedAtMs;
    this.source = entry.source;
    this.isAgreed = entry.isAgreed;
    this.grade = entry.grade;
  }
}

/** Cost of an entry without key and body: its objects, map and list slots, and the allocator's overhead. */
const ENTRY_BYTES = 1_024;

/** Limit of one entry as a share of the cache, so that it does not evict most of the others. */
const MAX_SHARE = 1 / 8;

/** A body in a larger buffer is copied if the rest of the buffer exceeds this share of the body. */
const MAX_SLACK_SHARE = 1 / 16;

/** The memory tier: a cache that is limited in bytes. All chains share it. */
export class MemoryStore {
  /** Undefined if the cache is disabled. */
  readonly #lru: LRUCache<string, CachedResponse> | undefined;
  #maxEntrySize = 0;

  /** `maxBytes`: 0 disables the cache. */
  constructor(maxBytes: number, { metrics: { memoryCaches, cacheEvictions } }: Pick<Telemetry, "metrics">) {
    if (maxBytes < ENTRY_BYTES) {
      return;
    }
    const evictions = cacheEvictions.series({});
    this.#maxEntrySize = Math.max(ENTRY_BYTES, Math.floor(maxBytes * MAX_SHARE));
    this.#lru = new LRUCache({
      maxSize: maxBytes,
      dispose: (_value, _key, reason) => {
        if (reason === "evict") {
          evictions.inc();
        }
      },
    });
    memoryCaches.add(this);
  }

  get bytes(): number {
    return this.#lru?.calculatedSize ?? 0;
  }

  get entries(): number {
    return this.#lru?.size ?? 0;
  }

  get(key: string): CachedResponse | undefined {
    return this.#lru?.get(key);
  }

  /** Caches an entry. Returns false if it is too large. */
  set(key: string, entry: CacheEntry): boolean {
    // lru-cache updates a size only if the value changes. Delete the entry first.
    this.#lru?.delete(key);
    const body = ownBytes(entry.body);
    const size = entryBytes(key, body);
    if (size > this.#maxEntrySize) {
      return false;
    }
    this.#lru?.set(key, new CachedResponse(entry, body), { size });
    return true;
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
