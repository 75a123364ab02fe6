import type { BlockRange } from "../core/logRange.ts";

/** Blocks of one segment, aligned. */
const SEGMENT_BLOCKS = 128n;
/** Segments side by side in one span: 1,920 blocks, fewer than the 2,000 that most nodes allow. */
const SEGMENTS_PER_SPAN = 15;
export const MAX_SPAN_BLOCKS: number = Number(SEGMENT_BLOCKS) * SEGMENTS_PER_SPAN;

/** What is looked up, fetched and kept as one: a whole segment, or the part of one at an end of the query. */
export interface Piece extends BlockRange {
  readonly final: boolean;
}

const lastOfSegment = (number: bigint): bigint => (number / SEGMENT_BLOCKS + 1n) * SEGMENT_BLOCKS - 1n;

export const segmentOf = (number: bigint): BlockRange => {
  const to = lastOfSegment(number);
  return { from: to - SEGMENT_BLOCKS + 1n, to };
};

/** The query's range, cut at segments and behind the finalized block (no piece is half final). */
export const cutPieces = ({ from, to }: BlockRange, finalized: bigint | undefined): Piece[] => {
  const pieces: Piece[] = [];
  for (let first = from; first <= to; ) {
    const final = finalized !== undefined && first <= finalized;
    let last = lastOfSegment(first);
    if (final && finalized < last) last = finalized;
    if (to < last) last = to;
    pieces.push({ from: first, to: last, final });
    first = last + 1n;
  }
  return pieces;
};

/** Equal parts of at most so many blocks. */
export const splitRange = ({ from, to }: BlockRange, maxBlocks: number): BlockRange[] => {
  const blocks = Number(to - from) + 1;
  const count = Math.ceil(blocks / maxBlocks);
  return Array.from({ length: count }, (_, at) => ({
    from: from + BigInt(Math.floor((blocks * at) / count)),
    to: from + BigInt(Math.floor((blocks * (at + 1)) / count)) - 1n,
  }));
};

/**
 * Blocks of one span where a node takes `limit`: as many segments, up to 15, as need the fewest requests a segment. Below
 * 128 that is 15 segments too: the span is then cut into parts that fit, and its segments put together from them.
 */
export const spanBlocks = (limit: number): number => {
  const requests = (segments: number) => Math.ceil((segments * Number(SEGMENT_BLOCKS)) / limit) / segments;
  let best = SEGMENTS_PER_SPAN;
  for (let segments = SEGMENTS_PER_SPAN; segments > 0; segments--) {
    if (requests(segments) < requests(best)) best = segments;
  }
  return best * Number(SEGMENT_BLOCKS);
};

/** How many pieces from `first` on make the next span: unbroken, all final or none, at most so many blocks, at least one. */
export const spanLength = (missing: (index: number) => Piece | undefined, first: number, maxBlocks: number): number => {
  const start = missing(first);
  let length = 1;
  for (let piece = missing(first + length); piece && start; piece = missing(first + length)) {
    if (piece.final !== start.final || piece.to - start.from >= BigInt(maxBlocks)) break;
    length++;
  }
  return length;
};
