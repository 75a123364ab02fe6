import type { Body, PendingBlock, PendingExtension } from "../core/view.ts";
import type { Flashblock } from "../feed/message.ts";
import type { AppliedTransaction, FlashblockPart, PendingBlockState } from "./applyFlashblock.ts";
import { showBlock } from "./pendingView.ts";

/** What subscribers were told of one message. */
interface Told {
  readonly part: FlashblockPart;
  readonly block: PendingBlockState;
}

export interface Announcement {
  readonly extended: readonly PendingExtension[];
  readonly removed: readonly Body[];
  /** Messages that were announced, are above the head, and are no longer there. */
  readonly dropped: readonly { readonly number: bigint; readonly part: FlashblockPart }[];
}

const hasReceipts = ({ transactions }: FlashblockPart): boolean =>
  transactions.every(({ receipt }) => receipt !== undefined);

/** In the hash of the message that `block` ends with. */
export const removedLogs = (block: PendingBlock, transactions: readonly AppliedTransaction[]): readonly Body[] => {
  const hashes = new Set(transactions.map(({ hash }) => hash));
  return block
    .logs()
    .filter(({ transactionHash }) => hashes.has(transactionHash))
    .map((log) => block.formatLog(log, true));
};

/** Remembers what was announced, so that each transaction and log is told once, and taken back once. */
export const createPublishedPreconfirmations = () => {
  let told = new Map<Flashblock, Told>();

  const isFresh = (part: FlashblockPart): boolean => !told.has(part.message);
  const isLate = (part: FlashblockPart): boolean => {
    const before = told.get(part.message);
    return before !== undefined && !hasReceipts(before.part) && hasReceipts(part);
  };

  const extend = (block: PendingBlockState): PendingExtension[] =>
    [
      { parts: block.parts.filter(isLate), brings: "logs" } as const,
      { parts: block.parts.filter(isFresh), brings: "transactions" } as const,
    ].flatMap(({ parts, brings }): PendingExtension[] => {
      const [first] = parts;
      const last = parts.at(-1);
      if (!first || !last) return [];
      const toTransaction = last.firstTransaction + last.transactions.length;
      return [{ block: showBlock(block), fromTransaction: first.firstTransaction, toTransaction, brings }];
    });

  return {
    /** The blocks that are shown now, all above `head`. */
    next: (blocks: readonly PendingBlockState[], head: bigint): Announcement => {
      const extended = blocks.flatMap(extend);
      const now = new Map<Flashblock, Told>();
      for (const block of blocks) {
        for (const part of block.parts) {
          // The block as it was when this message was the newest, for the hash that its logs were announced with.
          const before = told.get(part.message);
          now.set(part.message, before && hasReceipts(before.part) === hasReceipts(part) ? before : { part, block });
        }
      }
      const gone = [...told]
        .filter(([message, { block }]) => !now.has(message) && block.environment.number > head)
        .map(([, entry]) => entry);
      told = now;
      return {
        extended,
        removed: gone.flatMap(({ part, block }) => removedLogs(showBlock(block), part.transactions)),
        dropped: gone.map(({ part, block }) => ({ number: block.environment.number, part })),
      };
    },
  };
};
