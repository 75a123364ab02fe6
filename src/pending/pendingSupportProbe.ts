import { isQuantity } from "../ethereum/hex.ts";

interface NodeProbeOptions {
  readonly read: (method: string, params: readonly unknown[]) => Promise<unknown>;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number;
  readonly onChange: () => void;
}

const RECENTLY_USED_MS = 30_000;

const isAbove = (block: unknown, head: bigint): boolean =>
  typeof block === "object" &&
  block !== null &&
  "number" in block &&
  isQuantity(block.number) &&
  BigInt(block.number) > head;

/**
 * Reads whether the node builds a pending block.
 * If it does not, the node's `pending` is its `latest`, or `null`.
 */
export class PendingSupportProbe {
  readonly #options: NodeProbeOptions;
  /** Undefined until a node has answered. */
  #buildsPending: boolean | undefined;
  #usedAtMs = Number.NEGATIVE_INFINITY;
  #readAtMs = Number.NEGATIVE_INFINITY;
  #probedHead: bigint | undefined;

  constructor(options: NodeProbeOptions) {
    this.#options = options;
  }

  /** Whether the node builds a pending block. It is bound, because callers pass it on as a function. */
  readonly nodeBuildsPending = (): boolean => this.#buildsPending === true;

  /** Whether a view was used recently. */
  isInUse(): boolean {
    return this.#options.nowMs() - this.#usedAtMs < RECENTLY_USED_MS;
  }

  /** Records that a view was used. */
  markUsed(): void {
    this.#usedAtMs = this.#options.nowMs();
  }

  /** Records that a client has named `pending`. */
  markRead(): void {
    this.#readAtMs = this.#options.nowMs();
  }

  /** Probes when a view is used for the first time, and then once a block while clients name `pending`. */
  refresh(head: bigint): void {
    const isRead = this.#options.nowMs() - this.#readAtMs < RECENTLY_USED_MS;
    if (head !== this.#probedHead && (isRead || (this.#buildsPending === undefined && this.isInUse()))) {
      void this.#probe(head);
    }
  }

  async #probe(head: bigint): Promise<void> {
    this.#probedHead = head;
    try {
      const block = await this.#options.read("eth_getBlockByNumber", ["pending", false]);
      const buildsPending = isAbove(block, head);
      const isSame = buildsPending === this.nodeBuildsPending();
      this.#buildsPending = buildsPending;
      if (!isSame) {
        this.#options.onChange();
      }
    } catch {
      // No node has answered: the last result stays valid.
    }
  }
}
