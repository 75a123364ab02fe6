import type { Heads } from "../core/heads.ts";
import type { PendingView, View } from "../core/view.ts";

/** How new a view is: the number of the block that is built on its head, and how many flashblocks of it the view has. */
export interface ViewPosition {
  readonly number: bigint;
  readonly index: number;
}

/** The index of a flashblock counts from 0. */
export const positionOf = ({ heads, pending }: View): ViewPosition => {
  const newest = pending?.newest;
  return newest === undefined
    ? { number: heads.latest.number + 1n, index: 0 }
    : { number: newest.number, index: newest.index + 1 };
};

export const isOlder = (one: ViewPosition, other: ViewPosition): boolean =>
  one.number < other.number || (one.number === other.number && one.index < other.index);

const POSITION = /^(?<number>\d{1,18})-(?<index>\d{1,9})$/;

/** Parses the text of a position. Undefined if it is none. */
export const parsePosition = (text: string): ViewPosition | undefined => {
  const groups = POSITION.exec(text)?.groups;
  return groups && { number: BigInt(groups.number ?? ""), index: Number(groups.index) };
};

export const formatPosition = ({ number, index }: ViewPosition): string => `${number}-${index}`;

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
