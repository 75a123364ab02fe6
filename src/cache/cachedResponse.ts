import type { BlockId } from "../core/heads.ts";
import type { CacheStatus, RpcResponse } from "../core/rpcSource.ts";
import type { Deflated } from "../jsonrpc/call.ts";
import type { CacheEntry } from "./cacheEntry.ts";
import { deflateBody } from "./deflateBody.ts";

const HIT: CacheStatus = Object.freeze({ hit: "memory" });

/** Called when the compressed body is cached too, with its size. */
type OnGrowth = (key: string, entry: CachedResponse, bytes: number) => void;

/** An entry in memory that is also the response of each hit. A class, because 100,000 entries need no closures. */
export class CachedResponse implements CacheEntry, RpcResponse {
  readonly status: CacheStatus = HIT;
  readonly body: Uint8Array;
  readonly block?: BlockId;
  readonly isFinal: boolean;
  readonly storedAtMs: number;
  readonly #key: string;
  readonly #onGrowth: OnGrowth;
  #deflated: Promise<Deflated> | undefined;

  constructor(key: string, entry: CacheEntry, body: Uint8Array, onGrowth: OnGrowth) {
    this.#key = key;
    this.body = body;
    if (entry.block !== undefined) {
      this.block = entry.block;
    }
    this.isFinal = entry.isFinal;
    this.storedAtMs = entry.storedAtMs;
    this.#onGrowth = onGrowth;
  }

  /** Returns the compressed body. It is created once. */
  deflated(): Promise<Deflated> {
    this.#deflated ??= deflateBody(this.body).then((deflated) => {
      this.#onGrowth(this.#key, this, deflated.bytes.byteLength);
      return deflated;
    });
    return this.#deflated;
  }
}
