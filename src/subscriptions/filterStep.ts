import type { BlockId, Heads } from "../core/heads.ts";
import type { BlockRange } from "../core/logRange.ts";

export interface FilterStep {
  /** Reported before, and no longer canonical; oldest first. */
  readonly gone: readonly BlockId[];
  /** Reported before, and still canonical. */
  readonly stayed: readonly BlockId[];
  readonly added: BlockRange | undefined;
}

/**
 * What a filter has to report: how the chain that it reported differs from the view's. A block above the view's head (another
 * request had a newer view) is as good as the blocks below it.
 */
export const stepOf = (reported: readonly BlockId[], heads: Heads): FilterStep => {
  const fork = reported.findIndex(({ number, hash }) => (heads.at(number)?.hash ?? hash) !== hash);
  const stayed = fork === -1 ? reported : reported.slice(0, fork);
  const gone = fork === -1 ? [] : reported.slice(fork);
  const last = stayed.at(-1)?.number ?? (gone[0] ?? heads.latest).number - 1n;
  const to = heads.latest.number;
  return { gone, stayed, added: last < to ? { from: last + 1n, to } : undefined };
};

export const blocksOf = ({ from, to }: BlockRange, heads: Heads): BlockId[] => {
  const blocks: BlockId[] = [];
  for (let number = from > heads.oldest ? from : heads.oldest; number <= to; number++) {
    const block = heads.at(number);
    if (block !== undefined) blocks.push({ number, hash: block.hash });
  }
  return blocks;
};
