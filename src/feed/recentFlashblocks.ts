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

const MAX_RECENT = 10;

interface ReceivedFlashblock extends Omit<RecentFlashblock, "ageMs"> {
  readonly blockKey: string;
  /** The gas of its block up to this flashblock. */
  readonly cumulativeGasUsed: bigint;
  readonly receivedAtMs: number;
}

/** The newest flashblocks of a feed, for the status page. Several connections receive each one, and only its first copy is stored. */
export class RecentFlashblocks {
  #recent: readonly ReceivedFlashblock[] = [];

  note({ blockKey, index, number, transactions, commitments: { gasUsed } }: FeedMessage): void {
    if (this.#recent.some((each) => each.blockKey === blockKey && each.index >= index)) {
      return;
    }
    const before = this.#recent.find((each) => each.blockKey === blockKey);
    const received: ReceivedFlashblock = {
      blockKey,
      number: number === undefined ? (before?.number ?? 0) : Number(number),
      index,
      transactions: transactions.length,
      cumulativeGasUsed: gasUsed,
      gasUsed: Number(gasUsed - (before?.cumulativeGasUsed ?? 0n)),
      receivedAtMs: performance.now(),
    };
    this.#recent = [received, ...this.#recent].slice(0, MAX_RECENT);
  }

  /** Returns the newest flashblocks, newest first. */
  list(): readonly RecentFlashblock[] {
    return this.#recent.map(({ number, index, transactions, gasUsed, receivedAtMs }) => ({
      number,
      index,
      transactions,
      gasUsed,
      ageMs: ageOf(receivedAtMs),
    }));
  }

  /** The time since the newest flashblock. `undefined` before the first one. */
  get ageMs(): number | undefined {
    const [newest] = this.#recent;
    return newest && ageOf(newest.receivedAtMs);
  }
}

const ageOf = (receivedAtMs: number): number => Math.round(performance.now() - receivedAtMs);
