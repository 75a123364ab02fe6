import { LRUCache } from "lru-cache";
import type { StateKey } from "./stateKey.ts";

const MAX_KEYS = 10_000;
/** The origins may agree again after this time. */
const CONTESTED_MS = 600_000;

const nameOf = ({ field, address, slot }: StateKey): string => field + address + (slot ?? "");

/** Keys whose values become known from no node: origins disagree on them, or are asked about them now. */
export class ContestedKeys {
  readonly #names: LRUCache<string, true>;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#names = new LRUCache({ max: MAX_KEYS, ttl: CONTESTED_MS, ttlResolution: 0, perf: { now: nowMs } });
  }

  has(key: StateKey): boolean {
    return this.#names.size > 0 && this.#names.has(nameOf(key));
  }

  add(key: StateKey): void {
    this.#names.set(nameOf(key), true);
  }

  delete(key: StateKey): void {
    this.#names.delete(nameOf(key));
  }
}
