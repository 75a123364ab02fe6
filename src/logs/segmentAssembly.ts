import type { BlockRange } from "../core/logRange.ts";
import type { SegmentRange } from "./plan.ts";
import type { SegmentCache } from "./segmentCache.ts";

/** A larger segment that fetch ranges cut is not cached: its parts stay in memory after they are sent. */
const MAX_ASSEMBLED_BYTES = 4 * 1024 * 1024;

interface Part {
  readonly blocks: BlockRange;
  readonly bytes: Uint8Array;
}

/** Whether the parts, in order, cover the range without a hole or an overlap. */
const covers = (parts: readonly Part[], { from, to }: BlockRange): boolean => {
  let next = from;
  for (const { blocks } of parts) {
    if (blocks.from !== next) {
      return false;
    }
    next = blocks.to + 1n;
  }
  return next === to + 1n;
};

/** One segment of a query, which is cached once all its parts are fetched. All parts are verified against one view. */
export class SegmentAssembly {
  readonly range: SegmentRange;
  readonly #cache: SegmentCache;
  /** By first block. */
  readonly #parts = new Map<bigint, Part>();
  #bytes = 0;
  #isCached = false;
  #canCache = true;

  constructor(range: SegmentRange, cache: SegmentCache) {
    this.range = range;
    this.#cache = cache;
  }

  /** Whether the store has, or had, the segment. */
  get isCached(): boolean {
    return this.#isCached;
  }

  /** False after a part that may not be cached, or if the segment has no key. */
  get canCache(): boolean {
    return this.#canCache;
  }

  markCached(): void {
    this.#isCached = true;
  }

  /** Adds the logs of a part, or of the whole segment. */
  add(blocks: BlockRange, bytes: Uint8Array, isVerified: boolean): void {
    const isWhole = blocks.from === this.range.from && blocks.to === this.range.to;
    this.#bytes += isWhole ? 0 : bytes.length;
    if (!isVerified || this.#bytes > MAX_ASSEMBLED_BYTES) {
      this.#canCache = false;
      this.#parts.clear();
    } else if (isWhole) {
      this.#save(bytes);
    } else if (this.#canCache && !this.#isCached) {
      this.#parts.set(blocks.from, { blocks, bytes });
      this.#join();
    }
  }

  #join(): void {
    const parts = [...this.#parts.values()].sort((left, right) => Number(left.blocks.from - right.blocks.from));
    if (covers(parts, this.range)) {
      this.#parts.clear();
      this.#save(Buffer.concat(parts.map(({ bytes }) => bytes)));
    }
  }

  #save(bytes: Uint8Array): void {
    this.#isCached = this.#cache.save(this.range, bytes);
    this.#canCache = this.#isCached;
  }
}
