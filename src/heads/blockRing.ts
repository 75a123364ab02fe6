import type { HeaderFields, RingBlock } from "../core/heads.ts";
import type { SealedBlock } from "../nodes/sealedBlock.ts";

/** Canonical blocks without a hole, immutable; a new head copies two chunks and the list of chunks. */
export interface BlockRing {
  readonly oldest: bigint;
  readonly latest: RingBlock;
  readonly length: number;
  at(number: bigint): RingBlock | undefined;
  header(number: bigint): HeaderFields | undefined;
  /** With these on top, in place of what was at and above the first one's number. Ascending, linked; the first one's parent is held. */
  withTop(blocks: readonly SealedBlock[]): BlockRing;
  /** With these below the oldest. Ascending, linked; the last one is the oldest's parent. */
  withBottom(blocks: readonly SealedBlock[]): BlockRing;
}

export const RING_BLOCKS = 8192;
export const RING_HEADERS = 256;
const CHUNK_BLOCKS = 64;

type Chunk = readonly (SealedBlock | undefined)[];

interface Span {
  readonly oldest: number;
  readonly newest: number;
  /** Block number of a chunk's first place, divided by the chunk's size. */
  readonly firstChunk: number;
  readonly chunks: readonly Chunk[];
}

const chunkOf = (number: number): number => Math.floor(number / CHUNK_BLOCKS);

const entryAt = ({ oldest, newest, firstChunk, chunks }: Span, number: number): SealedBlock | undefined =>
  number < oldest || number > newest ? undefined : chunks[chunkOf(number) - firstChunk]?.[number % CHUNK_BLOCKS];

/** `span` with other bounds and these entries written; chunks that nothing was written to are shared. */
const written = (span: Span, oldest: number, newest: number, entries: readonly SealedBlock[]): Span => {
  const firstChunk = chunkOf(oldest);
  const chunks = Array.from(
    { length: chunkOf(newest) - firstChunk + 1 },
    (_, index) => span.chunks[index + firstChunk - span.firstChunk] ?? [],
  );
  const copies = new Map<number, (SealedBlock | undefined)[]>();
  for (const entry of entries) {
    const number = Number(entry.block.number);
    const index = chunkOf(number) - firstChunk;
    const copy = copies.get(index) ?? [...(chunks[index] ?? [])];
    copies.set(index, copy);
    copy[number % CHUNK_BLOCKS] = entry;
    chunks[index] = copy;
  }
  return { oldest, newest, firstChunk, chunks };
};

/** Entries at and above `from` that are not among the newest 256, without their headers. */
const agedOut = (span: Span, from: number): SealedBlock[] => {
  const aged: SealedBlock[] = [];
  for (let number = from; number <= span.newest - RING_HEADERS; number += 1) {
    const entry = entryAt(span, number);
    if (entry?.header) {
      aged.push({ block: entry.block, header: undefined });
    }
  }
  return aged;
};

const fromSpan = (span: Span): BlockRing => {
  const latest = entryAt(span, span.newest)?.block;
  if (!latest) {
    throw new RangeError("a ring holds at least one block");
  }
  return {
    oldest: BigInt(span.oldest),
    latest,
    length: span.newest - span.oldest + 1,
    at: (number) => entryAt(span, Number(number))?.block,
    header: (number) => entryAt(span, Number(number))?.header,
    withTop: (blocks) => {
      const newest = Number(blocks.at(-1)?.block.number ?? latest.number);
      const oldest = Math.max(span.oldest, newest - RING_BLOCKS + 1);
      const kept = blocks.filter(({ block }) => block.number >= oldest);
      const top = written(span, oldest, newest, kept);
      // Below the first new block, those up to here have lost their headers before.
      const from = Math.min(span.newest - RING_HEADERS + 1, Number(kept[0]?.block.number ?? newest));
      return fromSpan(written(top, oldest, newest, agedOut(top, from)));
    },
    withBottom: (blocks) => {
      const room = blocks.slice(-Math.max(0, RING_BLOCKS - (span.newest - span.oldest + 1)));
      const [first] = room;
      if (!first || span.newest - span.oldest + 1 >= RING_BLOCKS) {
        return fromSpan(span);
      }
      const headers = BigInt(span.newest - RING_HEADERS);
      const entries = room.map(({ block, header }) => ({ block, header: block.number > headers ? header : undefined }));
      return fromSpan(written(span, Number(first.block.number), span.newest, entries));
    },
  };
};

/** A ring of these blocks alone (at least one; ascending, linked). */
export const createBlockRing = (blocks: readonly SealedBlock[]): BlockRing => {
  const kept = blocks.slice(-RING_BLOCKS);
  const oldest = Number(kept[0]?.block.number ?? 0);
  const newest = oldest + kept.length - 1;
  const span = written({ oldest, newest, firstChunk: chunkOf(oldest), chunks: [] }, oldest, newest, kept);
  return fromSpan(written(span, oldest, newest, agedOut(span, oldest)));
};
