import type { Heads } from "../core/heads.ts";
import type { Body, PendingChange, PendingView, View } from "../core/view.ts";
import type { Address } from "../ethereum/hex.ts";
import type { PendingBlockState } from "./applyFlashblock.ts";
import type { createDroppedTransactions } from "./droppedTransactions.ts";
import type { Serving } from "./mode.ts";
import { createView } from "./pendingView.ts";
import { createPublishedPreconfirmations } from "./publishedPreconfirmations.ts";
import { createRecentHashes } from "./recentPendingHashes.ts";

export interface ViewPublicationOptions {
  /** The nonce raised over what was sent through forebay. */
  readonly advanceNonce: (address: Address, nonce: bigint) => bigint;
  readonly vanished: Pick<ReturnType<typeof createDroppedTransactions>, "suspect" | "clear">;
  /** Milliseconds of a clock that does not go back. */
  readonly now: () => number;
}

type WholeView = View & { readonly pending: PendingView };

const isSame = (a: WholeView, b: WholeView): boolean =>
  a.heads === b.heads &&
  a.pending.id === b.pending.id &&
  a.pending.mode === b.pending.mode &&
  a.pending.blocksFrom === b.pending.blocksFrom &&
  a.pending.stateFrom === b.pending.stateFrom;

/** Holds the current view, and tells subscribers what each new one brings. */
export class ViewPublication {
  readonly #options: ViewPublicationOptions;
  readonly #listeners = new Set<(change: PendingChange) => void>();
  readonly #announced = createPublishedPreconfirmations();
  readonly #recent: ReturnType<typeof createRecentHashes>;
  #current: WholeView | undefined;

  constructor(options: ViewPublicationOptions) {
    this.#options = options;
    this.#recent = createRecentHashes(options.now);
  }

  get current(): WholeView | undefined {
    return this.#current;
  }

  subscribe(listener: (change: PendingChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** `blocks`: folded, above the head. */
  publish(head: Heads, blocks: readonly PendingBlockState[], serving: Serving): void {
    const view = this.#build(head, blocks, serving);
    if (this.#current && isSame(view, this.#current)) return;
    this.#current = view;
    for (const block of view.pending.blocks) this.#recent.add(block);
    const { vanished } = this.#options;
    const shown = serving.blocksFrom === "view" ? blocks : [];
    const { extended, removed, dropped } = this.#announced.next(shown, head.latest.number);
    for (const { number, part } of dropped) vanished.suspect(number, [part]);
    vanished.clear(shown.flatMap(({ parts }) => parts));
    this.#emit({ view, extended, removed });
  }

  /** These logs were announced, and no block holds them. */
  takeBack(removed: readonly Body[]): void {
    if (this.#current && removed.length > 0) this.#emit({ view: this.#current, extended: [], removed });
  }

  #build(head: Heads, blocks: readonly PendingBlockState[], serving: Serving): WholeView {
    const pending = createView({
      ...serving,
      chain: { base: head.latest, extraBlockFields: {}, blocks },
      // Where the last message told the hash that the block was sealed with, the sealed block is meant.
      byHash: (hash) => {
        const block = this.#recent.find(hash);
        return block && head.at(block.number)?.hash === hash ? undefined : block;
      },
      advanceNonce: this.#options.advanceNonce,
    });
    return { heads: head, pending };
  }

  #emit(change: PendingChange): void {
    for (const listener of this.#listeners) listener(change);
  }
}
