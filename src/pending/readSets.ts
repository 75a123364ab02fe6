import { LRUCache } from "lru-cache";
import type { StateKeys } from "../core/stateReader.ts";
import { formatData } from "../ethereum/hex.ts";
import type { Transaction } from "../ethereum/transaction.ts";
import { createStateKeySet, type StateKeySet } from "../evm/reads/stateKeySet.ts";

const MAX_CALLS = 4_000;
/** Limit for one contract and selector. */
const MAX_KEYS = 512;
const SELECTOR_BYTES = 4;

/** The keys that earlier transactions read, by contract and selector. Values change from block to block, keys rarely do. */
export interface ReadSets {
  /** `omitted`: contracts and selectors whose keys are left out. This one is added to it. */
  of(transaction: Transaction, omitted: Set<string>): StateKeys | undefined;
  learn(transaction: Transaction, keys: StateKeys): void;
}

const callOf = ({ to, input }: Transaction): string | undefined =>
  to === null ? undefined : `${to}${formatData(input.subarray(0, SELECTOR_BYTES))}`;

export const createReadSets = (): ReadSets => {
  const sets = new LRUCache<string, StateKeySet>({ max: MAX_CALLS });
  return {
    of: (transaction, omitted) => {
      const call = callOf(transaction);
      if (call === undefined || omitted.has(call)) {
        return undefined;
      }
      omitted.add(call);
      return sets.get(call)?.keys();
    },
    learn: (transaction, keys) => {
      const call = callOf(transaction);
      if (call === undefined) {
        return;
      }
      const readSet = sets.get(call) ?? createStateKeySet();
      if (readSet.size < MAX_KEYS) {
        readSet.add(keys);
      }
      sets.set(call, readSet);
    },
  };
};
