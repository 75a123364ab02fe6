import type { StateStore, StoredState } from "../../cache/tieredStore.ts";
import type { BlockId } from "../../core/heads.ts";
import { type Hash, isData, parseData } from "../../ethereum/hex.ts";
import type { StateKey } from "../stateKey.ts";
import { ZERO_VALUE } from "../store/writtenValues.ts";
import type { FetchedValues, ValueFetch } from "./stateFetcher.ts";
import { methodOf, parseSingle } from "./stateRequests.ts";

export interface StoredFetchOptions {
  readonly fetch: ValueFetch;
  readonly store: Pick<StateStore, "originOf" | "get" | "set">;
  isFinal(block: BlockId): boolean;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
export const NO_VALUES: FetchedValues = {
  values: new Map(),
  codes: new Map(),
  outcomes: [],
  node: undefined,
  isConfirmed: undefined,
  units: 0,
};

/** A key with its value in the store: as in FetchedValues. */
interface StoredRead {
  readonly key: StateKey;
  readonly name: string;
  readonly stored: StoredState | undefined;
  readonly value: string | undefined;
  readonly code: Uint8Array | undefined;
}

/** Wraps a fetch with a store for final blocks. Replicas that share the store fetch each value once. */
export const storedFetch =
  ({ fetch, store, isFinal }: StoredFetchOptions): ValueFetch =>
  async (keys, further, block) => {
    if (!isFinal(block)) {
      return fetch(keys, further, block);
    }
    const reads = await Promise.all(keys.map((key) => readStored(store, key, block.hash)));
    const isServed = ({ stored, value }: StoredRead): boolean => stored?.isServed === true && value !== undefined;
    const missing = reads.filter((read) => !isServed(read));
    const avoidedOrigins = [...new Set(missing.flatMap(({ stored }) => stored?.origin ?? []))];
    const fetched =
      missing.length + further.length === 0
        ? NO_VALUES
        : await fetch(
            missing.map(({ key }) => key),
            further,
            block,
            avoidedOrigins,
          );
    for (const read of missing) {
      storeValue(store, read, fetched);
    }
    const served = reads.filter(isServed);
    return {
      ...fetched,
      // Other nodes may have stated the stored values.
      node: served.length === 0 ? fetched.node : undefined,
      values: new Map([
        ...fetched.values,
        ...served.flatMap(({ key, value }) => (value ? [[key, value] as const] : [])),
      ]),
      codes: new Map([
        ...fetched.codes,
        ...served.flatMap(({ value, code }) => (value && code ? [[value, code] as const] : [])),
      ]),
    };
  };

/** Returns the name in the store. It is the method and the parameters of the call that reads the value, with the block's hash. */
const nameOf = (key: StateKey, hash: Hash): string =>
  ["state", hash, methodOf(key), key.address, ...(key.slot === undefined ? [] : [key.slot])].join(":");

const readStored = async (store: StoredFetchOptions["store"], key: StateKey, hash: Hash): Promise<StoredRead> => {
  const name = nameOf(key, hash);
  const stored = await store.get(name);
  const result: unknown = stored && JSON.parse(decoder.decode(stored.value));
  const value = parseSingle(key, result);
  const code = key.field === "code" && value !== ZERO_VALUE && isData(result) ? parseData(result) : undefined;
  return { key, name, stored, value, code };
};

/**
 * Stores a value that two origins have stated, or one. A value of one confirms the value of another origin if both are equal; if
 * not, neither is used later. With values of several nodes, it is not known which of them stated this one.
 */
const storeValue = (
  store: StoredFetchOptions["store"],
  { key, name, stored, value: earlier }: StoredRead,
  { values, codes, node, isConfirmed }: FetchedValues,
): void => {
  const value = values.get(key);
  const text = typeof value === "string" ? textOf(key, value, codes) : undefined;
  if (node === undefined || text === undefined) {
    return;
  }
  const isOther = stored?.origin !== undefined && stored.origin !== store.originOf(node);
  if (isConfirmed === true || !isOther || earlier === value) {
    store.set(name, encoder.encode(JSON.stringify(text)), node, isConfirmed === true || isOther);
  }
};

/** Returns the result that a node would return. */
const textOf = ({ field }: StateKey, value: string, codes: FetchedValues["codes"]): string | undefined => {
  if (field !== "code") {
    return `0x${value}`;
  }
  const code = value === ZERO_VALUE ? new Uint8Array(0) : codes.get(value);
  return code && `0x${Buffer.from(code).toString("hex")}`;
};
