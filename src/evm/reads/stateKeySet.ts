import type { StateKeys } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";

/** A set of state keys, each once. */
export interface StateKeySet {
  readonly size: number;
  add(keys: StateKeys): void;
  keys(): StateKeys;
}

export const createStateKeySet = (): StateKeySet => {
  const accounts = new Set<Address>();
  const slots = new Map<string, readonly [Address, Hash]>();
  const blockHashes = new Set<bigint>();
  return {
    get size() {
      return accounts.size + slots.size + blockHashes.size;
    },
    add: (keys) => {
      for (const address of keys.accounts) {
        accounts.add(address);
      }
      for (const slot of keys.slots) {
        slots.set(slot[0] + slot[1], slot);
      }
      for (const number of keys.blockHashes) {
        blockHashes.add(number);
      }
    },
    keys: () => ({ accounts: [...accounts], slots: [...slots.values()], blockHashes: [...blockHashes] }),
  };
};
