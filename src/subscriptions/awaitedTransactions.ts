import type { Subscription } from "./subscriber.ts";

/** A subscription that waits for transactions by their hashes. */
export interface Awaiting {
  readonly kind: "transactionReceipts" | "transactionInclusion";
  readonly subscription: Subscription;
}

/** Who waits for which transaction: one index for both kinds of subscriptions, so that a block is read once for them. */
export class AwaitedTransactions {
  readonly #byHash = new Map<string, Set<Awaiting>>();

  has(hash: string): boolean {
    return this.#byHash.has(hash);
  }

  /** Returns those of one kind that wait for a transaction. */
  of<A extends Awaiting>(hash: string, isOfKind: (awaiting: Awaiting) => awaiting is A): readonly A[] {
    return [...(this.#byHash.get(hash) ?? [])].filter(isOfKind);
  }

  add(hash: string, awaiting: Awaiting): void {
    this.#byHash.set(hash, (this.#byHash.get(hash) ?? new Set()).add(awaiting));
  }

  delete(hash: string, awaiting: Awaiting): void {
    const others = this.#byHash.get(hash);
    others?.delete(awaiting);
    if (others?.size === 0) {
      this.#byHash.delete(hash);
    }
  }
}
