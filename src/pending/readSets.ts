import { LRUCache } from "lru-cache";
import type { StateKeys } from "../core/stateReader.ts";
import { formatData } from "../ethereum/hex.ts";
import type { Transaction } from "../ethereum/transaction.ts";
import { StateKeySet } from "../evm/reads/stateKeySet.ts";

const MAX_CALLS = 4_000;
/** Limit for one contract and selector. */
const MAX_KEYS = 512;
const SELECTOR_BYTES = 4;

const callOf = ({ to, input }: Transaction): string | undefined =>
  to === null ? undefined : `${to}${formatData(input.subarray(0, SELECTOR_BYTES))}`;

/** The keys that earlier transactions read, by contract and selector. Values change from block to block, keys rarely do. */
export class ReadSets {
  readonly #sets = new LRUCache<string, StateKeySet>({ max: MAX_CALLS });

  /** `omitted`: contracts and selectors whose keys are left out. This one is added to it. */
  of(transaction: Transaction, omitted: Set<string>): StateKeys | undefined {
    const call = callOf(transaction);
    if (call === undefined || omitted.has(call)) {
      return undefined;
    }
    omitted.add(call);
    return this.#sets.get(call)?.keys();
  }

  learn(transaction: Transaction, keys: StateKeys): void {
    const call = callOf(transaction);
    if (call === undefined) {
      return;
    }
    const readSet = this.#sets.get(call) ?? new StateKeySet();
    if (readSet.size < MAX_KEYS) {
      readSet.add(keys);
    }
    this.#sets.set(call, readSet);
  }
}
