import type { BlockId } from "../core/heads.ts";
import type { CacheStatus, RpcResponse } from "../core/rpcSource.ts";
import type { CacheEntry } from "./cacheEntry.ts";
import type { ValueSource } from "./valueSource.ts";

const HIT: CacheStatus = Object.freeze({ hit: "memory" });

/** An entry in memory that is also the response of each hit, so that a hit creates no object. */
export class CachedResponse implements CacheEntry, RpcResponse {
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
