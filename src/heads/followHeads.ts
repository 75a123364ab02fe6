import { type FollowedHeads, type HeadChange, type Heads, isCanonicalIn, type RingBlock } from "../core/heads.ts";
import { larger, smaller } from "../ethereum/bigintOrder.ts";

const blocksAbove = ({ at, latest }: Heads, number: bigint): readonly RingBlock[] => {
  const blocks: RingBlock[] = [];
  for (let next = number + 1n; next <= latest.number; next++) {
    const block = at(next);
    if (block !== undefined) {
      blocks.push(block);
    }
  }
  return blocks;
};

/** Returns the difference between two heads. */
const changeBetween = (before: Heads, heads: Heads): HeadChange => {
  if (before.latest.hash === heads.latest.hash) {
    return { heads, from: [], to: [] };
  }
  const oldest = larger(before.oldest, heads.oldest);
  let number = smaller(before.latest.number, heads.latest.number);
  while (number >= oldest && before.at(number)?.hash !== heads.at(number)?.hash) {
    number--;
  }
  return { heads, from: blocksAbove(before, number), to: blocksAbove(heads, number) };
};

/** Whether the newest block of the heads is an ancestor of that of the others. */
const areBelow = ({ latest }: Heads, others: Heads): boolean =>
  latest.number < others.latest.number && isCanonicalIn(others, latest);

/**
 * Follows the newest heads that a majority of several origins has, for one listener. Without any, they stay as they were.
 * Lower heads of a branch that the listener was told of are not followed. So no block is repeated, and each stays in `current()`.
 */
export const followAgreed = (heads: FollowedHeads): FollowedHeads => {
  let last: Heads | undefined;
  const next = (of: Heads | undefined): Heads | undefined => {
    const found = of?.isAgreed ? of : last;
    return found !== undefined && last !== undefined && areBelow(found, last) ? last : found;
  };
  return {
    current: () => next(heads.current()),
    subscribe: (listener) => {
      last = next(heads.current());
      return heads.subscribe((change) => {
        const found = next(change.heads);
        if (found !== undefined) {
          const changed = last === undefined ? { heads: found, from: [], to: [] } : changeBetween(last, found);
          last = found;
          listener(changed);
        }
      });
    },
  };
};

/** Follows the heads of a chain without the new blocks that `isFollowed` refuses. */
export const followOnly = (heads: FollowedHeads, isFollowed: (block: RingBlock) => boolean): FollowedHeads => ({
  current: () => heads.current(),
  subscribe: (listener) => heads.subscribe((change) => listener({ ...change, to: change.to.filter(isFollowed) })),
});
