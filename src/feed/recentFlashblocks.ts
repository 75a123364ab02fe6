import type { Flashblock } from "./message.ts";

export interface RecentFlashblock {
  readonly number: number;
  /** Position in its block, from 0. */
  readonly index: number;
  readonly transactions: number;
  /** Of this message alone. */
  readonly gasUsed: number;
  readonly ageMs: number;
}

export interface RecentFlashblocks {
  note(message: Flashblock): void;
  /** Newest first. */
  list(): readonly RecentFlashblock[];
  /** Since the last message; undefined before the first. */
  readonly ageMs: number | undefined;
}

const MAX_KEPT = 10;

type Noted = Omit<RecentFlashblock, "ageMs"> & { readonly id: string; readonly total: bigint; readonly atMs: number };

/** The newest messages of a feed, for people to look at. Several sockets bring each of them; the first one counts. */
export const createRecentFlashblocks = (now: () => number = () => performance.now()): RecentFlashblocks => {
  let noted: readonly Noted[] = [];
  return {
    note: ({ payloadId, index, base, blockNumber, diff }) => {
      if (noted.some((each) => each.id === payloadId && each.index >= index)) return;
      const before = noted.find(({ id }) => id === payloadId);
      const number = base?.blockNumber ?? blockNumber;
      const next: Noted = {
        id: payloadId,
        number: number === undefined ? (before?.number ?? 0) : Number(number),
        index,
        transactions: diff.transactions.length,
        total: diff.gasUsed,
        gasUsed: Number(diff.gasUsed - (before?.total ?? 0n)),
        atMs: now(),
      };
      noted = [next, ...noted].slice(0, MAX_KEPT);
    },
    list: () => {
      const nowMs = now();
      return noted.map(({ number, index, transactions, gasUsed, atMs }) => ({
        number,
        index,
        transactions,
        gasUsed,
        ageMs: Math.round(nowMs - atMs),
      }));
    },
    get ageMs() {
      const [newest] = noted;
      return newest && Math.round(now() - newest.atMs);
    },
  };
};
