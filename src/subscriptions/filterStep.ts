import type { BlockId } from "../core/heads.ts";
import type { BlockRange } from "../core/logRange.ts";
import type { FilterChain } from "./filterChain.ts";
import type { ReportedBlock } from "./filterStore.ts";

/** The difference between the chain that a filter reported and the canonical chain. */
export interface FilterStep {
  /** Reported blocks that are no longer canonical, oldest first. */
  readonly gone: readonly ReportedBlock[];
  /** Reported blocks that are still canonical. */
  readonly stayed: readonly ReportedBlock[];
  readonly added: BlockRange | undefined;
}

/**
 * Compares the reported blocks (oldest first) with the view. A request with a newer view may have reported blocks above
 * the view's head: they count as canonical if the blocks below them are.
 */
export const filterStep = (reported: readonly ReportedBlock[], heads: FilterChain): FilterStep => {
  const fork = reported.findIndex(({ number, hash }) => (heads.at(number)?.hash ?? hash) !== hash);
  const stayed = fork === -1 ? reported : reported.slice(0, fork);
  const gone = fork === -1 ? [] : reported.slice(fork);
  const last = stayed.at(-1)?.number ?? (gone[0] ?? heads.latest).number - 1n;
  const to = heads.latest.number;
  return { gone, stayed, added: last < to ? { from: last + 1n, to } : undefined };
};

/**
 * Returns the newest reported block that counts as canonical only because the chain does not reach it; undefined if the step is
 * certain.
 */
export const unknownBlock = (reported: readonly BlockId[], chain: FilterChain): BlockId | undefined => {
  const newest = filterStep(reported, chain).stayed.at(-1);
  return newest !== undefined && newest.number < chain.oldest ? newest : undefined;
};

/** Returns the step with all blocks from a number on as added. */
export const withAddedFrom = (step: FilterStep, from: bigint, { latest: { number: to } }: FilterChain): FilterStep => ({
  ...step,
  added: from <= to ? { from, to } : undefined,
});

/** Returns the blocks of a range that the chain has, oldest first. */
export const canonicalBlocks = ({ from, to }: BlockRange, heads: FilterChain): BlockId[] => {
  const blocks: BlockId[] = [];
  for (let number = from > heads.oldest ? from : heads.oldest; number <= to; number++) {
    const block = heads.at(number);
    if (block !== undefined) {
      blocks.push({ number, hash: block.hash });
    }
  }
  return blocks;
};
