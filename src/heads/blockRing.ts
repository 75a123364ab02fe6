import type { HeaderFields, RingBlock } from "../core/heads.ts";
import { BLOOM_BYTES } from "../ethereum/bloom.ts";
import type { SealedBlock } from "../nodes/blockReads.ts";

const BLOOMS_PER_BUFFER = 64;

/** Copies of blooms that share buffers: a typed array with a buffer of its own takes twice the memory of a bloom. */
class BloomCopies {
  #buffer = new Uint8Array(0);
  #usedBytes = 0;

  /** Returns a view of the copy. A buffer is freed when none of its blooms is used any more. */
  copy(bloom: Uint8Array): Uint8Array {
    if (this.#usedBytes === this.#buffer.length) {
      this.#buffer = new Uint8Array(BLOOMS_PER_BUFFER * BLOOM_BYTES);
      this.#usedBytes = 0;
    }
    const copy = this.#buffer.subarray(this.#usedBytes, this.#usedBytes + BLOOM_BYTES);
    copy.set(bloom);
    this.#usedBytes += BLOOM_BYTES;
    return copy;
  }
}

/** An immutable list of linked canonical blocks. A new head copies two chunks and the list of chunks. */
export interface BlockRing {
  readonly oldest: bigint;
  readonly latest: RingBlock;
  readonly length: number;
  at(number: bigint): RingBlock | undefined;
  header(number: bigint): HeaderFields | undefined;
  /**
   * Returns a ring with these blocks on top. They replace all blocks at and above the first one's number.
   * They are ascending and linked, and the ring has the first one's parent.
   */
  withTop(blocks: readonly SealedBlock[]): BlockRing;
  /** Returns a ring with these blocks below the oldest. They are ascending and linked; the last one is the oldest's parent. */
  withBottom(blocks: readonly SealedBlock[]): BlockRing;
}

export const RING_BLOCKS = 8192;
export const RING_HEADERS = 256;
const CHUNK_BLOCKS = 64;

type Chunk = readonly (SealedBlock | undefined)[];

/** A range of blocks in chunks of CHUNK_BLOCKS, which two rings can share. */
interface ChunkedBlocks {
  readonly oldest: number;
  readonly newest: number;
  /** Number of the first chunk: the number of its first block divided by CHUNK_BLOCKS. */
  readonly firstChunk: number;
  readonly chunks: readonly Chunk[];
  readonly blooms: BloomCopies;
}

const chunkOf = (number: number): number => Math.floor(number / CHUNK_BLOCKS);

const entryAt = ({ oldest, newest, firstChunk, chunks }: ChunkedBlocks, number: number): SealedBlock | undefined =>
  number < oldest || number > newest ? undefined : chunks[chunkOf(number) - firstChunk]?.[number % CHUNK_BLOCKS];

/** Returns the range with new bounds and these entries. Chunks without new entries are shared. */
const withEntries = (
  chunked: ChunkedBlocks,
  oldest: number,
  newest: number,
  entries: readonly SealedBlock[],
): ChunkedBlocks => {
  const firstChunk = chunkOf(oldest);
  const chunks = Array.from(
    { length: chunkOf(newest) - firstChunk + 1 },
    (_, index) => chunked.chunks[index + firstChunk - chunked.firstChunk] ?? [],
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
  return { oldest, newest, firstChunk, chunks, blooms: chunked.blooms };
};

/** Returns a block in about half of the memory. Most blocks of the ring are old, and only their blooms are read. */
const compact = ({ blooms }: ChunkedBlocks, block: RingBlock, parent: RingBlock | undefined): RingBlock => ({
  number: block.number,
  hash: block.hash,
  parentHash: parent?.hash === block.parentHash ? parent.hash : block.parentHash,
  timestamp: block.timestamp,
  logsBloom: blooms.copy(block.logsBloom),
});

/** Returns the entries from `from` up that are older than the newest 256, with their headers removed. */
const withoutHeaders = (chunked: ChunkedBlocks, from: number): SealedBlock[] => {
  const withoutHeader: SealedBlock[] = [];
  for (let number = from; number <= chunked.newest - RING_HEADERS; number += 1) {
    const entry = entryAt(chunked, number);
    if (entry?.header) {
      const parent = entryAt(chunked, number - 1)?.block;
      withoutHeader.push({ block: compact(chunked, entry.block, parent), header: undefined });
    }
  }
  return withoutHeader;
};

const fromChunks = (chunked: ChunkedBlocks): BlockRing => {
  const latest = entryAt(chunked, chunked.newest)?.block;
  if (!latest) {
    throw new RangeError("a ring has at least one block");
  }
  return {
    oldest: BigInt(chunked.oldest),
    latest,
    length: chunked.newest - chunked.oldest + 1,
    at: (number) => entryAt(chunked, Number(number))?.block,
    header: (number) => entryAt(chunked, Number(number))?.header,
    withTop: (blocks) => {
      const newest = Number(blocks.at(-1)?.block.number ?? latest.number);
      const oldest = Math.max(chunked.oldest, newest - RING_BLOCKS + 1);
      const added = blocks.filter(({ block }) => block.number >= oldest);
      const top = withEntries(chunked, oldest, newest, added);
      // Older entries below the first new block have no headers any more.
      const from = Math.min(chunked.newest - RING_HEADERS + 1, Number(added[0]?.block.number ?? newest));
      return fromChunks(withEntries(top, oldest, newest, withoutHeaders(top, from)));
    },
    withBottom: (blocks) => {
      const room = blocks.slice(-Math.max(0, RING_BLOCKS - (chunked.newest - chunked.oldest + 1)));
      const [first] = room;
      if (!first || chunked.newest - chunked.oldest + 1 >= RING_BLOCKS) {
        return fromChunks(chunked);
      }
      const headers = BigInt(chunked.newest - RING_HEADERS);
      const entries = room.map(({ block, header }) => ({ block, header: block.number > headers ? header : undefined }));
      return fromChunks(withEntries(chunked, Number(first.block.number), chunked.newest, entries));
    },
  };
};

/** Creates a ring of these blocks: at least one, ascending, linked. */
export const createBlockRing = (blocks: readonly SealedBlock[]): BlockRing => {
  const newestBlocks = blocks.slice(-RING_BLOCKS);
  const oldest = Number(newestBlocks[0]?.block.number ?? 0);
  const newest = oldest + newestBlocks.length - 1;
  const empty: ChunkedBlocks = { oldest, newest, firstChunk: chunkOf(oldest), chunks: [], blooms: new BloomCopies() };
  const chunked = withEntries(empty, oldest, newest, newestBlocks);
  return fromChunks(withEntries(chunked, oldest, newest, withoutHeaders(chunked, oldest)));
};
