import type { StateStore, StoredState } from "../../cache/tieredStore.ts";
import type { BlockId } from "../../core/heads.ts";
import { isData, parseData } from "../../ethereum/hex.ts";
import type { StateKey } from "../stateKey.ts";
import { ZERO_VALUE } from "../stateKey.ts";
import type { FoundValue } from "./foundValues.ts";
import type { FetchedValues } from "./stateFetcher.ts";
import { methodOf, parseSingle } from "./stateRequests.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** What the store has of some keys. */
interface FinalValues {
  readonly found: readonly FoundValue[];
  /** Nodes must return these values, if possible others than those that stated what is stored. */
  readonly missing: readonly StateKey[];
  readonly avoidedOrigins: readonly string[];
  /** Stores what nodes returned. */
  add(fetched: FetchedValues): void;
}

/** A key with its value in the store. It may not be used yet. */
interface StoredRead {
  readonly key: StateKey;
  readonly name: string;
  readonly stored: StoredState | undefined;
  readonly value: string | undefined;
  readonly code: Uint8Array | undefined;
}

/** The store that replicas share. */
export type FinalStore = Pick<StateStore, "originOf" | "get" | "set">;

/** Reads values after a final block from the store that replicas share, so that each value is fetched once. */
export const readFinal = async (store: FinalStore, keys: readonly StateKey[], block: BlockId): Promise<FinalValues> => {
  const reads = await Promise.all(keys.map((key) => readStored(store, key, block)));
  const found = reads.flatMap(({ key, stored, value, code }) =>
    stored?.isServed === true && value !== undefined ? [{ key, value, code }] : [],
  );
  const served = new Set(found.map(({ key }) => key));
  const missing = reads.filter(({ key }) => !served.has(key));
  return {
    found,
    missing: missing.map(({ key }) => key),
    avoidedOrigins: [...new Set(missing.flatMap(({ stored }) => stored?.origin ?? []))],
    add: (fetched) => {
      for (const read of missing) {
        storeValue(store, read, fetched);
      }
    },
  };
};

/** The name in the store is the method and the parameters of the call that reads the value, with the block's hash. */
const readStored = async (store: FinalStore, key: StateKey, { hash }: BlockId): Promise<StoredRead> => {
  const name = ["state", hash, methodOf(key), key.address, ...(key.slot === undefined ? [] : [key.slot])].join(":");
  const stored = await store.get(name);
  const result: unknown = stored && JSON.parse(decoder.decode(stored.value));
  const code = key.field === "code" && isData(result) ? parseData(result) : undefined;
  return { key, name, stored, value: parseSingle(key, result), code };
};

/**
 * Stores a value with the node that stated it. It is confirmed if two origins were asked, or if another one has stated the same
 * before. With values of several nodes, it is not known which of them stated this one.
 */
const storeValue = (
  store: FinalStore,
  { key, name, stored, value: earlier }: StoredRead,
  { values, codes, node, isConfirmed }: FetchedValues,
): void => {
  const value = values.get(key);
  const text = value && textOf(key, value, codes);
  if (node === undefined || text === undefined) {
    return;
  }
  const isOther = stored?.origin !== undefined && stored.origin !== store.originOf(node);
  store.set(name, encoder.encode(JSON.stringify(text)), node, isConfirmed === true || (isOther && earlier === value));
};

/** Returns the result that a node would return. */
const textOf = ({ field }: StateKey, value: string, codes: FetchedValues["codes"]): string | undefined => {
  if (field !== "code") {
    return `0x${value}`;
  }
  const code = value === ZERO_VALUE ? new Uint8Array(0) : codes.get(value);
  return code && `0x${Buffer.from(code).toString("hex")}`;
};
