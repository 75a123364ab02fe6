import type { Body, PendingBlock, PendingExtension } from "../core/view.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { FeedMessage } from "../feed/feedMessage.ts";
import type { BlockMessages } from "../feed/sequenceState.ts";
import type { AppliedTransaction, BlockPart, PendingBlockState } from "./applyMessage.ts";
import type { BlockFormatter } from "./blockFormatter.ts";

/** A flashblock that was published to subscribers, and the block of which it was the newest part. */
interface PublishedPart {
  readonly part: BlockPart;
  readonly block: PendingBlockState;
}

interface Announcement {
  readonly extended: readonly PendingExtension[];
  readonly removed: readonly Body[];
  /** Published transactions that the feed does not have any more. */
  readonly abandoned: readonly Hash[];
  /** Published flashblocks above the head that are not in the pending blocks any more. */
  readonly dropped: readonly { readonly number: bigint; readonly part: BlockPart }[];
}

const hasReceipts = ({ transactions }: BlockPart): boolean =>
  transactions.every(({ receipt }) => receipt !== undefined);

/** Formats the logs of these transactions as removed. They have the hash of the block's newest flashblock. */
export const removedLogs = (block: PendingBlock, transactions: readonly AppliedTransaction[]): readonly Body[] => {
  const hashes = new Set(transactions.map(({ hash }) => hash));
  return block
    .logs()
    .filter(({ transactionHash }) => hashes.has(transactionHash))
    .map((log) => block.formatLog(log, true));
};

/** The record of published pre-confirmations: each transaction and log is published once, and removed once. */
export class PublishedPreconfirmations {
  readonly #formatted: BlockFormatter;
  #published = new Map<FeedMessage, PublishedPart>();

  constructor(formatted: BlockFormatter) {
    this.#formatted = formatted;
  }

  /**
   * Compares the current pending blocks, all above `head`, with the published ones. What they lack is dropped only if the feed does
   * not have it any more (`known`). It may be executed again, because an earlier message was late.
   */
  next(blocks: readonly PendingBlockState[], head: bigint, known: readonly BlockMessages[]): Announcement {
    const extended = blocks.flatMap((block) => this.#extend(block));
    const current = new Map<FeedMessage, PublishedPart>();
    for (const block of blocks) {
      for (const part of block.parts) {
        // Logs are published with the block hash of this flashblock, so the record has the block of that time.
        const before = this.#published.get(part.message);
        current.set(part.message, before && hasReceipts(before.part) === hasReceipts(part) ? before : { part, block });
      }
    }
    const messages = new Set(known.flatMap((block) => block.messages));
    const dropped: PublishedPart[] = [];
    for (const [message, entry] of this.#published) {
      if (current.has(message) || entry.block.environment.number <= head) {
        continue;
      }
      if (messages.has(message)) {
        current.set(message, entry);
      } else {
        dropped.push(entry);
      }
    }
    this.#published = current;
    // A copy of the flashblock may have replaced it, with the same transactions.
    const kept = new Set(dropped.length === 0 ? [] : [...messages].flatMap(({ transactions }) => transactions));
    const abandoned = dropped.map(({ part, block }) => ({
      block,
      transactions: part.transactions.filter(({ raw }) => !kept.has(raw)),
    }));
    return {
      extended,
      removed: abandoned.flatMap(({ block, transactions }) => removedLogs(this.#formatted.format(block), transactions)),
      abandoned: abandoned.flatMap(({ transactions }) => transactions.map(({ hash }) => hash)),
      dropped: dropped.map(({ part, block }) => ({ number: block.environment.number, part })),
    };
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
    const before = this.#published.get(part.message);
    return before !== undefined && !hasReceipts(before.part) && hasReceipts(part);
  }
}
