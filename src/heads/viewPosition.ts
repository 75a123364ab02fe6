import type { Heads } from "../core/heads.ts";
import type { PendingView, View } from "../core/view.ts";

/** How new a view is: its newest pending block, or else the next block, and the number of its flashblocks. */
export interface ViewPosition {
  readonly number: bigint;
  readonly index: number;
  /** The number of the head. It is less than the one below `number` while flashblocks are ahead of it. */
  readonly head: bigint;
  /** State is that of the head or of a node, as while flashblocks are not verified: it may lack what they wrote. */
  readonly isStateSealed: boolean;
}

/** The index of a flashblock counts from 0. */
export const positionOf = ({ heads, pending }: View): ViewPosition => {
  const newest = pending?.newest;
  const head = heads.latest.number;
  return newest === undefined
    ? { number: head + 1n, index: 0, head, isStateSealed: false }
    : { number: newest.number, index: newest.index + 1, head, isStateSealed: pending?.stateFrom !== "view" };
};

const isBelow = (one: Pick<ViewPosition, "number" | "index">, other: Pick<ViewPosition, "number" | "index">): boolean =>
  one.number < other.number || (one.number === other.number && one.index < other.index);

/** The newest flashblock whose state the view has. */
const stateOf = ({ number, index, head, isStateSealed }: ViewPosition): Pick<ViewPosition, "number" | "index"> =>
  isStateSealed ? { number: head + 1n, index: 0 } : { number, index };

/** Whether one view lacks something of the other: a flashblock, the state of one, or a sealed block. */
export const isOlder = (one: ViewPosition, other: ViewPosition): boolean =>
  one.head < other.head || isBelow(one, other) || isBelow(stateOf(one), stateOf(other));

const POSITION = /^(?<number>\d{1,18})-(?<index>\d{1,9})(-(?<head>\d{1,18}))?(?<sealed>-sealed)?$/;

/** Parses the text of a position. Undefined if it is none. */
export const parsePosition = (text: string): ViewPosition | undefined => {
  const groups = POSITION.exec(text)?.groups;
  if (groups === undefined) {
    return undefined;
  }
  const number = BigInt(groups.number ?? "");
  const head = groups.head === undefined ? number - 1n : BigInt(groups.head);
  return { number, index: Number(groups.index), head, isStateSealed: groups.sealed !== undefined };
};

export const formatPosition = ({ number, index, head, isStateSealed }: ViewPosition): string =>
  `${number}-${index}${head === number - 1n ? "" : `-${head}`}${isStateSealed ? "-sealed" : ""}`;

/** Formats the positions of views. Most requests have the newest view, so its text is formatted once. */
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
