import { LRUCache } from "lru-cache";
import type { Address, Hash } from "../../ethereum/hex.ts";

/** Some 200 bytes each. */
const MAX_SENDERS = 50_000;

/** Senders of signed transactions by transaction hash. A recovery costs as much as the execution of a transfer. */
export class SenderCache {
  /** Created with the first sender: the empty cache takes 1 MB. */
  #senders: LRUCache<Hash, Address> | undefined;

  get(hash: Hash): Address | undefined {
    return this.#senders?.get(hash);
  }

  add(hash: Hash, sender: Address): void {
    this.#senders ??= new LRUCache({ max: MAX_SENDERS });
    this.#senders.set(hash, sender);
  }
}
