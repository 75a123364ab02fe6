import type { BlockRange } from "../core/logRange.ts";

/** Blocks of one segment, aligned. */
const SEGMENT_BLOCKS = 128n;
/** Most nodes accept ranges of fewer than 2,000 blocks. */
export const MAX_RANGE_BLOCKS = 1_999;

/** The cached unit of logs: a whole segment, or the part of a segment at an end of the query. */
export interface SegmentRange extends BlockRange {
  readonly final: boolean;
}

const lastOfSegment = (number: bigint): bigint => (number / SEGMENT_BLOCKS + 1n) * SEGMENT_BLOCKS - 1n;

export const segmentOf = (number: bigint): BlockRange => {
  const to = lastOfSegment(number);
  return { from: to - SEGMENT_BLOCKS + 1n, to };
};

/** Splits a query's range at segment boundaries and after the finalized block: no segment is half final. */
export const splitIntoSegments = ({ from, to }: BlockRange, finalized: bigint | undefined): SegmentRange[] => {
  const segments: SegmentRange[] = [];
  for (let first = from; first <= to; ) {
    const final = finalized !== undefined && first <= finalized;
    let last = lastOfSegment(first);
    if (final && finalized < last) {
      last = finalized;
    }
    if (to < last) {
      last = to;
    }
    segments.push({ from: first, to: last, final });
    first = last + 1n;
  }
  return segments;
};

/** Splits a range into equal parts of up to `maxBlocks` blocks, in ascending order. */
export const splitRange = ({ from, to }: BlockRange, maxBlocks: number): BlockRange[] => {
  const blocks = Number(to - from) + 1;
  const count = Math.ceil(blocks / maxBlocks);
  return Array.from({ length: count }, (_, at) => ({
    from: from + BigInt(Math.floor((blocks * at) / count)),
    to: from + BigInt(Math.floor((blocks * (at + 1)) / count)) - 1n,
  }));
};

/**
 * Returns the blocks of one fetch range for a node that accepts `limit` blocks.
 * Below the size of a segment it is a multiple of the limit: the fetcher splits the range and merges the logs.
 */
export const rangeBlocksFor = (limit: number): number =>
  limit >= SEGMENT_BLOCKS ? limit : Math.floor(MAX_RANGE_BLOCKS / limit) * limit;

/** The number of requests for `blocks` adjacent blocks. */
const countRequests = (blocks: bigint, maxBlocks: bigint): bigint => (blocks + maxBlocks - 1n) / maxBlocks;

/**
 * Returns the last block of a fetch range that begins at `from`, where blocks up to `to` are missing.
 * The range ends with a segment if the rest then needs no further request.
 */
export const endOfRange = ({ from, to }: BlockRange, maxBlocks: number): bigint => {
  const max = BigInt(maxBlocks);
  const last = from + max - 1n;
  if (last >= to) {
    return to;
  }
  const aligned = segmentOf(last + 1n).from - 1n;
  const isFree = aligned >= from && countRequests(to - aligned, max) === countRequests(to - last, max);
  return isFree ? aligned : last;
};

/** Returns the first block of a fetch range that ends at `to`, where blocks down to `from` are missing. */
export const startOfRange = ({ from, to }: BlockRange, maxBlocks: number): bigint => {
  const max = BigInt(maxBlocks);
  const first = to - max + 1n;
  if (first <= from) {
    return from;
  }
  const aligned = segmentOf(first - 1n).to + 1n;
  const isFree = aligned <= to && countRequests(aligned - from, max) === countRequests(first - from, max);
  return isFree ? aligned : first;
};
