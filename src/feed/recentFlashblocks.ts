import type { FeedMessage } from "./feedMessage.ts";

export interface RecentFlashblock {
  readonly number: number;
  /** The position in its block, from 0. */
  readonly index: number;
  readonly transactions: number;
  /** The gas of this flashblock alone. */
  readonly gasUsed: number;
  readonly ageMs: number;
}

export interface RecentFlashblocks {
  note(message: FeedMessage): void;
  /** Returns the newest flashblocks, newest first. */
  list(): readonly RecentFlashblock[];
  /** The time since the newest flashblock. `undefined` before the first one. */
  readonly ageMs: number | undefined;
}

const MAX_RECENT = 10;

interface ReceivedFlashblock extends Omit<RecentFlashblock, "ageMs"> {
  readonly blockKey: string;
  /** The gas of its block up to this flashblock. */
  readonly cumulativeGasUsed: bigint;
  readonly receivedAtMs: number;
}

/**
 * Stores the newest flashblocks of a feed for the status page.
 * Several connections receive each flashblock, and only its first copy is stored.
 */
export const createRecentFlashblocks = (nowMs: () => number = () => performance.now()): RecentFlashblocks => {
  let recent: readonly ReceivedFlashblock[] = [];
  return {
    note: ({ blockKey, index, number, transactions, commitments }) => {
      if (recent.some((each) => each.blockKey === blockKey && each.index >= index)) {
        return;
      }
      const before = recent.find((each) => each.blockKey === blockKey);
      const { gasUsed } = commitments;
      const received: ReceivedFlashblock = {
        blockKey,
        number: number === undefined ? (before?.number ?? 0) : Number(number),
        index,
        transactions: transactions.length,
        cumulativeGasUsed: gasUsed,
        gasUsed: Number(gasUsed - (before?.cumulativeGasUsed ?? 0n)),
        receivedAtMs: nowMs(),
      };
      recent = [received, ...recent].slice(0, MAX_RECENT);
    },
    list: () => {
      const currentMs = nowMs();
      return recent.map(({ number, index, transactions, gasUsed, receivedAtMs }) => ({
        number,
        index,
        transactions,
        gasUsed,
        ageMs: Math.round(currentMs - receivedAtMs),
      }));
    },
    get ageMs() {
      const [newest] = recent;
      return newest && Math.round(nowMs() - newest.receivedAtMs);
    },
  };
};
