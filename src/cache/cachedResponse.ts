import type { BlockId } from "../core/heads.ts";
import type { CacheStatus, RpcResponse } from "../core/rpcSource.ts";
import type { Deflated } from "../jsonrpc/call.ts";
import type { CacheEntry } from "./cacheEntry.ts";
import { deflateBody } from "./deflateBody.ts";

const HIT: CacheStatus = Object.freeze({ hit: "memory" });

/** Told once the compressed form is kept too, with its size. */
type OnGrowth = (key: string, kept: CachedResponse, bytes: number) => void;

/** An entry in memory that is at once the answer of every hit on it. A class: a hundred thousand of these need no closures. */
export class CachedResponse implements CacheEntry, RpcResponse {
  readonly status: CacheStatus = HIT;
  readonly body: Uint8Array;
  readonly block?: BlockId;
  readonly final: boolean;
  readonly storedAtMs: number;
  readonly #key: string;
  readonly #onGrowth: OnGrowth;
  #deflated: Promise<Deflated> | undefined;

  constructor(key: string, entry: CacheEntry, body: Uint8Array, onGrowth: OnGrowth) {
    this.#key = key;
    this.body = body;
    if (entry.block !== undefined) this.block = entry.block;
    this.final = entry.final;
    this.storedAtMs = entry.storedAtMs;
    this.#onGrowth = onGrowth;
  }

  deflated(): Promise<Deflated> {
    this.#deflated ??= deflateBody(this.body).then((form) => {
      this.#onGrowth(this.#key, this, form.bytes.byteLength);
      return form;
    });
    return this.#deflated;
  }
}
