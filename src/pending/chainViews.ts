import type { CurrentHeads } from "../core/heads.ts";
import type { PendingChange, View } from "../core/view.ts";
import type { Address } from "../ethereum/hex.ts";
import { createRecentFlashblocks } from "../feed/recentFlashblocks.ts";
import { type CurrentViews, noHead } from "../heads/requestViews.ts";
import type { FindExecuted } from "../state/sources/feedSource.ts";
import type { Pending } from "./pending.ts";
import { parseSubmitted, type SubmittedTransaction } from "./submittedTransaction.ts";

/** The views of one chain. Until its pending state begins, they are those of its heads alone. */
export class ChainViews implements CurrentViews {
  /** The newest messages of the feed, for the status page. */
  readonly flashblocks = createRecentFlashblocks();
  readonly #chain: string;
  readonly #heads: CurrentHeads;
  readonly #listeners = new Set<(change: PendingChange) => void>();
  #pending: Pending | undefined;

  constructor(chain: string, heads: CurrentHeads) {
    this.#chain = chain;
    this.#heads = heads;
  }

  begin(pending: Pending): void {
    this.#pending = pending;
    pending.subscribe((change) => {
      for (const listener of this.#listeners) {
        listener(change);
      }
    });
  }

  /** Returns the current view. Throws RpcError (503) before the first head. */
  view(): View {
    return this.#pending?.view() ?? this.sealed();
  }

  /** Returns the view without pending blocks. Reading it does not start probes of the nodes' pending blocks. */
  sealed(): View {
    const heads = this.#heads.current();
    if (heads === undefined) {
      throw noHead(this.#chain);
    }
    return { heads };
  }

  markPendingRead(): void {
    this.#pending?.markRead();
  }

  subscribe(listener: (change: PendingChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Returns what the feed's messages have executed of a sealed block: see Pending. */
  readonly findExecuted: FindExecuted = (...read) => this.#pending?.findExecuted(...read) ?? "incomplete";

  /** Executes the feed's messages again, on no value that is known now. */
  forget(): void {
    this.#pending?.forget();
  }

  /** Records a raw transaction that a node accepted, for the pending nonce of its sender. Resolves when replicas can read it. */
  async recordSubmitted(raw: string): Promise<SubmittedTransaction | undefined> {
    const transaction = parseSubmitted(raw);
    if (transaction?.sent !== undefined) {
      const { hash, sent } = transaction;
      await this.#pending?.recordSubmitted(hash, sent.sender, sent.nonce);
    }
    return transaction;
  }

  /** Returns `nonce` increased by the consecutive accepted transactions of the sender, of all replicas. */
  async advanceNonce(sender: Address, nonce: bigint): Promise<bigint> {
    return this.#pending?.advanceNonce(sender, nonce) ?? nonce;
  }

  async close(): Promise<void> {
    await this.#pending?.close();
  }
}
