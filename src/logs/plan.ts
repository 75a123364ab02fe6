import type { BlockRange } from "../core/logRange.ts";

/** Blocks of one segment, aligned. */
const SEGMENT_BLOCKS = 128n;
/** Adjacent segments in one fetch range: 1,920 blocks, fewer than the 2,000 that most nodes allow. */
const SEGMENTS_PER_RANGE = 15;
export const MAX_RANGE_BLOCKS: number = Number(SEGMENT_BLOCKS) * SEGMENTS_PER_RANGE;

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
 * It chooses the number of segments, up to 15, that needs the fewest requests a segment.
 * Below 128 blocks that is 15 segments too: the fetcher splits the range into parts and merges their logs.
 */
export const rangeBlocksFor = (limit: number): number => {
  const requests = (segments: number) => Math.ceil((segments * Number(SEGMENT_BLOCKS)) / limit) / segments;
  let best = SEGMENTS_PER_RANGE;
  for (let segments = SEGMENTS_PER_RANGE; segments > 0; segments--) {
    if (requests(segments) < requests(best)) {
      best = segments;
    }
  }
  return best * Number(SEGMENT_BLOCKS);
};

/**
 * Counts the segments from `first` that form the next fetch range, at least one.
 * They are adjacent and missing, all final or none, and span up to `maxBlocks` blocks.
 */
export const countSegments = (
  missing: (index: number) => SegmentRange | undefined,
  first: number,
  maxBlocks: number,
): number => {
  const start = missing(first);
  let length = 1;
  for (let segment = missing(first + length); segment && start; segment = missing(first + length)) {
    if (segment.final !== start.final || segment.to - start.from >= BigInt(maxBlocks)) {
      break;
    }
    length++;
  }
  return length;
};
