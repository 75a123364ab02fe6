import type { Address, Hash } from "../../ethereum/hex.ts";

export interface SenderCacheOptions {
  /** Some 270 bytes each. */
  readonly max?: number;
  readonly nowMs?: () => number;
}

const MAX_SENDERS = 50_000;
/** Reorganisations of the feed's blocks execute transactions again. Later ones are recovered again. */
const PERIOD_MS = 60_000;

/**
 * Senders of signed transactions by transaction hash. A recovery costs as much as the execution of a transfer.
 * A sender remains for one to two minutes, or until too many others came.
 */
export class SenderCache {
  readonly #maxGeneration: number;
  readonly #nowMs: () => number;
  #current = new Map<Hash, Address>();
  #previous: ReadonlyMap<Hash, Address> = new Map();
  #sinceMs: number;

  constructor({ max = MAX_SENDERS, nowMs = () => performance.now() }: SenderCacheOptions = {}) {
    this.#maxGeneration = max / 2;
    this.#nowMs = nowMs;
    this.#sinceMs = nowMs();
  }

  get(hash: Hash): Address | undefined {
    return this.#current.get(hash) ?? this.#previous.get(hash);
  }

  add(hash: Hash, sender: Address): void {
    const nowMs = this.#nowMs();
    const elapsedMs = nowMs - this.#sinceMs;
    if (elapsedMs >= PERIOD_MS || this.#current.size >= this.#maxGeneration) {
      this.#previous = elapsedMs >= 2 * PERIOD_MS ? new Map() : this.#current;
      this.#current = new Map();
      this.#sinceMs = nowMs;
    }
    this.#current.set(hash, sender);
  }
}
