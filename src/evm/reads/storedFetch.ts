import type { BlockId } from "../../core/heads.ts";
import type { StateFetch } from "../../core/stateReader.ts";
import type { Call } from "../../jsonrpc/call.ts";

/** State values that replicas share. A value that was evicted or cannot be read is `undefined`. */
export interface StateStore {
  get(key: string): Promise<Uint8Array | undefined>;
  /** Stores a value in the background. */
  set(key: string, value: Uint8Array): void;
}

export interface StoredFetchOptions {
  readonly fetch: StateFetch;
  readonly store: StateStore;
  isFinal(block: BlockId): boolean;
}

const STORED_METHODS = new Set(["eth_getBalance", "eth_getTransactionCount", "eth_getCode", "eth_getStorageAt"]);
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Wraps a state fetch with a store for final blocks. Replicas that share the store fetch each value once. */
export const storedFetch =
  ({ fetch, store, isFinal }: StoredFetchOptions): StateFetch =>
  async (calls, block) => {
    if (!isFinal(block)) {
      return fetch(calls, block);
    }
    const keys = calls.map((call) => (STORED_METHODS.has(call.method) ? keyOf(call, block) : undefined));
    const stored = await Promise.all(keys.map((key) => (key === undefined ? undefined : store.get(key))));
    const missing = calls.filter((_, at) => stored[at] === undefined);
    const fetched = missing.length === 0 ? [] : await fetch(missing, block);
    let next = 0;
    return calls.map((_, at) => {
      const bytes = stored[at];
      if (bytes !== undefined) {
        return JSON.parse(decoder.decode(bytes));
      }
      const outcome = fetched[next++];
      const key = keys[at];
      if (key !== undefined && typeof outcome === "string") {
        store.set(key, encoder.encode(JSON.stringify(outcome)));
      }
      return outcome;
    });
  };

/** Returns the store key. The block is the last of `params`, and the key contains its hash instead. */
const keyOf = ({ method, params }: Call, { hash }: BlockId): string =>
  ["state", hash, method, ...params.slice(0, -1)].join(":");
