import type { Body, PendingBlock, PendingExtension } from "../chain/view.ts";
import type { Flashblock } from "../feed/message.ts";
import type { FoldedBlock, Part } from "./fold.ts";
import { showBlock } from "./view.ts";

/** What subscribers were told of one message. */
interface Told {
  readonly part: Part;
  readonly block: FoldedBlock;
}

export interface Announcement {
  readonly extended: readonly PendingExtension[];
  readonly removed: readonly Body[];
  /** Messages that were announced, are above the head, and are no longer there. */
  readonly dropped: readonly Part[];
}

const hasReceipts = ({ transactions }: Part): boolean => transactions.every(({ receipt }) => receipt !== undefined);

/** In the hash of the message that brought them, as they were announced. */
export const removedLogs = (block: PendingBlock, part: Part): readonly Body[] => {
  const end = part.firstTransaction + part.transactions.length;
  const logs = block.logs(part.firstTransaction).filter(({ transactionIndex }) => transactionIndex < end);
  return logs.map((log) => block.formatLog(log, true));
};

/** Remembers what was announced, so that each transaction and log is told once, and taken back once. */
export const createAnnounced = () => {
  let told = new Map<Flashblock, Told>();

  const extend = (block: FoldedBlock): PendingExtension[] => {
    const fresh = block.parts.find(({ message }) => !told.has(message));
    const late = block.parts.find((part) => {
      const before = told.get(part.message);
      return before && !hasReceipts(before.part) && hasReceipts(part);
    });
    const extension = (part: Part, brings: PendingExtension["brings"]): PendingExtension => ({
      block: showBlock(block),
      fromTransaction: part.firstTransaction,
      brings,
    });
    return [...(late ? [extension(late, "logs")] : []), ...(fresh ? [extension(fresh, "transactions")] : [])];
  };

  return {
    /** The blocks that are shown now, all above `head`. */
    next: (blocks: readonly FoldedBlock[], head: bigint): Announcement => {
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
        removed: gone.flatMap(({ part, block }) => removedLogs(showBlock(block), part)),
        dropped: gone.map(({ part }) => part),
      };
    },
  };
};
