import { isSameResult } from "../../cache/sameResult.ts";
import type { StateStore, StoredState } from "../../cache/stateStore.ts";
import type { BlockId } from "../../core/heads.ts";
import type { StateFetch } from "../../core/stateReader.ts";
import type { Call } from "../../jsonrpc/call.ts";

export interface StoredFetchOptions {
  readonly fetch: StateFetch;
  readonly store: Pick<StateStore, "originOf" | "get" | "set">;
  isFinal(block: BlockId): boolean;
}

const STORED_METHODS = new Set(["eth_getBalance", "eth_getTransactionCount", "eth_getCode", "eth_getStorageAt"]);
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A call with its key in the store, and its value there. */
interface Read {
  readonly call: Call;
  readonly key: string | undefined;
  readonly stored: StoredState | undefined;
}

interface Giver {
  readonly node: string;
  readonly isConfirmed: boolean | undefined;
}

/**
 * Stores a value that two origins have stated, or one. A value of one confirms the value of another origin if both are equal; if
 * not, neither is used later.
 */
const storeValue = (
  store: StoredFetchOptions["store"],
  { call, key, stored }: Read,
  outcome: unknown,
  { node, isConfirmed }: Giver,
): void => {
  if (key === undefined || typeof outcome !== "string") {
    return;
  }
  const value = encoder.encode(JSON.stringify(outcome));
  if (isConfirmed === true) {
    store.set(key, value, node, true);
    return;
  }
  const isOther = stored?.origin !== undefined && stored.origin !== store.originOf(node);
  if (!isOther) {
    store.set(key, value, node, false);
  } else if (isSameResult(call.method, stored.value, value)) {
    store.set(key, value, node, true);
  }
};

/** Wraps a state fetch with a store for final blocks. Replicas that share the store fetch each value once. */
export const storedFetch =
  ({ fetch, store, isFinal }: StoredFetchOptions): StateFetch =>
  async (calls, block) => {
    if (!isFinal(block)) {
      return fetch(calls, block);
    }
    const reads = await Promise.all(calls.map((call) => readStored(store, call, block)));
    const missing = reads.filter(({ stored }) => stored?.isServed !== true);
    let giver: Giver | undefined;
    const onNode = (node: string | undefined, isConfirmed?: boolean): void => {
      giver = node === undefined ? undefined : { node, isConfirmed };
    };
    const avoidedOrigins = [...new Set(missing.flatMap(({ stored }) => stored?.origin ?? []))];
    const calledFor = missing.map(({ call }) => call);
    const fetched = missing.length === 0 ? [] : await fetch(calledFor, block, onNode, avoidedOrigins);
    let next = 0;
    return reads.map((read) => {
      if (read.stored?.isServed === true) {
        return JSON.parse(decoder.decode(read.stored.value));
      }
      const outcome = fetched[next++];
      // With values of several nodes, it is not known which of them stated this one.
      if (giver !== undefined) {
        storeValue(store, read, outcome, giver);
      }
      return outcome;
    });
  };

const readStored = async (store: StoredFetchOptions["store"], call: Call, block: BlockId): Promise<Read> => {
  const key = STORED_METHODS.has(call.method) ? keyOf(call, block) : undefined;
  return { call, key, stored: key === undefined ? undefined : await store.get(key) };
};

/** Returns the store key. The block is the last of `params`, and the key contains its hash instead. */
const keyOf = ({ method, params }: Call, { hash }: BlockId): string =>
  ["state", hash, method, ...params.slice(0, -1)].join(":");
