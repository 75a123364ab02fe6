import type { Heads } from "../core/heads.ts";
import type { BlockRange } from "../core/logRange.ts";
import type { LogsRefusal, Node } from "../core/node.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { LogFilter } from "../ethereum/logFilter.ts";

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
const splitRange = ({ from, to }: BlockRange, maxBlocks: number): BlockRange[] => {
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
 * The range ends with a segment if the remainder then needs no further request.
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

/** The blocks and the filter of one request for logs, or a part of it. */
export interface FetchRange extends BlockRange {
  readonly filter: LogFilter;
  /** All blocks are final. */
  readonly final: boolean;
  /** Set for one block by its hash; `from` and `to` are its number. */
  readonly blockHash?: Hash;
  /** The block was requested as part of a range, and is fetched again: its receipts are not read. */
  readonly isRecheck?: true;
  /** It is larger than any that the node has accepted, and is requested whole. */
  readonly isLarger?: boolean;
  /** The only node for the request. */
  readonly node?: Node;
  /** The node that left out the logs of the block. Another one is preferred. */
  readonly avoided?: Node;
  /** The origin whose logs of the range are compared. Only nodes of others are asked. */
  readonly comparedOrigin?: string;
}

/** A node refused a planned range. The query plans its blocks again, in smaller ranges. */
export class RefusedRange extends Error {
  override readonly name = "RefusedRange";
  readonly refusal: LogsRefusal;

  constructor(node: Node, range: FetchRange, refusal: LogsRefusal) {
    super(`${node.name} refused a range of ${blocksOf(range)} blocks`);
    this.refusal = refusal;
  }
}

export const blocksOf = ({ from, to }: BlockRange): number => Number(to - from) + 1;

/** The highest final block of a range: undefined if none is final. A block by its hash need not be canonical. */
export const lastFinal = ({ from, to, blockHash }: FetchRange, { finalized }: Heads): bigint | undefined => {
  if (finalized === undefined || finalized.number < from || blockHash !== undefined) {
    return undefined;
  }
  return finalized.number < to ? finalized.number : to;
};

/** Splits a range after its last final block. Returns undefined if the range is of one kind. */
export const splitFinal = (range: FetchRange, heads: Heads): readonly FetchRange[] | undefined => {
  const last = lastFinal(range, heads);
  return last === undefined || last === range.to
    ? undefined
    : [
        { ...range, to: last, final: true },
        { ...range, from: last + 1n },
      ];
};

const chunk = <T>(values: readonly T[], maxLength: number): T[][] => {
  const count = Math.ceil(values.length / maxLength);
  const at = (part: number) => Math.floor((values.length * part) / count);
  return Array.from({ length: count }, (_, part) => values.slice(at(part), at(part + 1)));
};

const cutAddresses = (range: FetchRange, max: number): FetchRange[] =>
  range.filter.addresses.length <= max
    ? [range]
    : chunk(range.filter.addresses, max).map((addresses) => ({ ...range, filter: { ...range.filter, addresses } }));

/** Cuts the first position that has more topics than `max`. */
const cutTopics = (range: FetchRange, max: number): FetchRange[] => {
  const position = range.filter.topics.findIndex(({ length }) => length > max);
  const topics = range.filter.topics[position];
  if (topics === undefined) {
    return [range];
  }
  return chunk(topics, max).map((part) => ({
    ...range,
    filter: { ...range.filter, topics: range.filter.topics.with(position, part) },
  }));
};

/** Splits a range into parts of at most `maxBlocks` blocks. Returns only the range itself if it fits. */
export const fitFetchRange = (range: FetchRange, maxBlocks: number): readonly FetchRange[] =>
  range.blockHash !== undefined || range.isLarger === true || blocksOf(range) <= maxBlocks
    ? [range]
    : splitRange(range, maxBlocks).map((part) => ({ ...range, ...part }));

/** Halves the longer of the addresses and the topics. */
const halveLists = (range: FetchRange): readonly FetchRange[] | undefined => {
  const addresses = range.filter.addresses.length;
  const topics = Math.max(0, ...range.filter.topics.map(({ length }) => length));
  if (Math.max(addresses, topics) <= 1) {
    return undefined;
  }
  return addresses >= topics ? cutAddresses(range, Math.ceil(addresses / 2)) : cutTopics(range, Math.ceil(topics / 2));
};

/** Halves a range that a node refused: its blocks, or its lists if they are too long or the range is one block. */
export const halveFetchRange = (range: FetchRange, refusal: LogsRefusal): readonly FetchRange[] | undefined => {
  const blocks = blocksOf(range);
  if (refusal === "lists" || blocks === 1 || range.blockHash !== undefined) {
    return halveLists(range);
  }
  return splitRange(range, Math.ceil(blocks / 2)).map((part) => ({ ...range, ...part, isLarger: false }));
};
