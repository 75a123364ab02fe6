import type { Heads } from "../core/heads.ts";
import type { PendingView, View } from "../core/view.ts";

/** How new a view is: its newest pending block, or else the next block, and the number of its flashblocks. */
export interface ViewPosition {
  readonly number: bigint;
  readonly index: number;
  /** The number of the head. It is less than the one below `number` while flashblocks are ahead of it. */
  readonly head: bigint;
}

/** The index of a flashblock counts from 0. */
export const positionOf = ({ heads, pending }: View): ViewPosition => {
  const newest = pending?.newest;
  const head = heads.latest.number;
  return newest === undefined
    ? { number: head + 1n, index: 0, head }
    : { number: newest.number, index: newest.index + 1, head };
};

/** Whether one view lacks something of the other: a flashblock, or a sealed block. */
export const isOlder = (one: ViewPosition, other: ViewPosition): boolean =>
  one.head < other.head || one.number < other.number || (one.number === other.number && one.index < other.index);

const POSITION = /^(?<number>\d{1,18})-(?<index>\d{1,9})(-(?<head>\d{1,18}))?$/;

/** Parses the text of a position. Undefined if it is none. */
export const parsePosition = (text: string): ViewPosition | undefined => {
  const groups = POSITION.exec(text)?.groups;
  if (groups === undefined) {
    return undefined;
  }
  const number = BigInt(groups.number ?? "");
  return { number, index: Number(groups.index), head: groups.head === undefined ? number - 1n : BigInt(groups.head) };
};

export const formatPosition = ({ number, index, head }: ViewPosition): string =>
  head === number - 1n ? `${number}-${index}` : `${number}-${index}-${head}`;

/** Formats the positions of views. Most requests have the newest view, so that its text is formatted once. */
export class PositionTexts {
  #heads: Heads | undefined;
  #pending: PendingView | undefined;
  #text = "";

  of(view: View): string {
    if (view.heads !== this.#heads || view.pending !== this.#pending) {
      this.#heads = view.heads;
      this.#pending = view.pending;
      this.#text = formatPosition(positionOf(view));
    }
    return this.#text;
  }
}
