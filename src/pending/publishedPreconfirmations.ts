import type { PendingExtension } from "../core/view.ts";
import type { FeedMessage } from "../feed/feedMessage.ts";
import type { BlockPart, PendingBlockState } from "./applyMessage.ts";
import type { BlockFormatter } from "./blockFormatter.ts";

const hasReceipts = ({ transactions }: BlockPart): boolean =>
  transactions.every(({ receipt }) => receipt !== undefined);

/** The record of published pre-confirmations: each message is published once, and its logs once. The sealed block takes them back. */
export class PublishedPreconfirmations {
  readonly #formatted: BlockFormatter;
  /** Whether a published message had receipts. A block that is hidden and shown again has the same messages. */
  readonly #published = new WeakMap<FeedMessage, boolean>();

  constructor(formatted: BlockFormatter) {
    this.#formatted = formatted;
  }

  /** Returns what these pending blocks, all above the head, have beyond the published ones. */
  extend(blocks: readonly PendingBlockState[]): readonly PendingExtension[] {
    const extended = blocks.flatMap((block) => this.#extend(block));
    for (const part of blocks.flatMap(({ parts }) => parts)) {
      this.#published.set(part.message, hasReceipts(part));
    }
    return extended;
  }

  #extend(block: PendingBlockState): PendingExtension[] {
    return [
      { parts: block.parts.filter((part) => this.#hasNewReceipts(part)), kind: "logs" } as const,
      { parts: block.parts.filter(({ message }) => !this.#published.has(message)), kind: "transactions" } as const,
    ].flatMap(({ parts, kind }): PendingExtension[] => {
      const [first] = parts;
      const last = parts.at(-1);
      if (!first || !last) {
        return [];
      }
      const toTransaction = last.firstTransaction + last.transactions.length;
      return [{ block: this.#formatted.format(block), fromTransaction: first.firstTransaction, toTransaction, kind }];
    });
  }

  /** Whether the part was published without receipts and has them now. */
  #hasNewReceipts(part: BlockPart): boolean {
    return this.#published.get(part.message) === false && hasReceipts(part);
  }
}
