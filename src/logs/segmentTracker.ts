import type { Heads } from "../core/heads.ts";
import type { BlockRange } from "../core/logRange.ts";
import type { FetchedLogs } from "./fetchLogs.ts";
import { joinLogs } from "./mergeLogs.ts";
import type { SegmentRange } from "./plan.ts";
import { SegmentAssembly } from "./segmentAssembly.ts";
import { SegmentCache } from "./segmentCache.ts";
import { type ClaimOrder, MISSING, type Part, SegmentParts, type State } from "./segmentParts.ts";
import { cutSegment, findRange, type Segment, type SegmentStore } from "./segments.ts";

/** Limit of buffered segments from the store. The other cached segments are looked up again before they are sent. */
const MAX_BUFFERED_FROM_STORE_BYTES = 12 * 1024 * 1024;
const LOOKUP_SEGMENTS = 128;
const REPEATED_LOOKUP_SEGMENTS = 16;

/** Adjacent blocks that are fetched with one request. */
export interface ClaimedRange extends BlockRange {
  /** All blocks are final. */
  readonly final: boolean;
  /** Buffers the fetched logs, and stores segments that are complete and may be cached. */
  complete(fetched: FetchedLogs): void;
  /** Marks the blocks as missing again: the range was too large for memory or for the node. */
  discard(): void;
}

/** The segments of one query in ascending order, in parts. Indexes are those of parts; a claim changes those above it. */
export interface SegmentTracker {
  /** Segments that the store had at the first lookup, and the stores that had them. */
  readonly firstLookup: { readonly segments: number; readonly from: ReadonlySet<Segment["from"]> };
  /** False if a fetched segment could not be cached. */
  readonly isStored: boolean;
  /** Bytes of buffered segments, plus the bytes that `countBuffered` added. */
  readonly bufferedBytes: number;
  /** Adds bytes that no part owns yet; a negative number releases them. */
  countBuffered(bytes: number): void;
  stateAt(index: number): State | undefined;
  /** Index of the first part that is not final, or -1. */
  firstRecent(): number;
  /** Index of the first missing part at or after `start`, or -1. */
  nextMissing(start: number): number;
  /** Marks up to `maxBlocks` adjacent missing blocks as being fetched, from one end of the run that contains `index`. */
  claimRange(index: number, maxBlocks: number, order: ClaimOrder): ClaimedRange | undefined;
  /** Looks all segments up. */
  lookUp(): Promise<void>;
  /** Looks up evicted parts again: the one at `index` and the next few. */
  lookUpAgain(index: number): Promise<void>;
  markSent(index: number): void;
  /** Evicts stored parts after `index`, to make room for the one that is sent next. */
  evictBefore(index: number): void;
}

const FETCHING: State = { kind: "fetching" };
const STORED: State = { kind: "stored" };
const SENT: State = { kind: "sent" };

class StoredSegmentTracker implements SegmentTracker {
  readonly #cache: SegmentCache;
  readonly #parts: SegmentParts;
  readonly #sources = new Set<Segment["from"]>();
  #cachedSegments = 0;
  #isStored = true;
  #bufferedBytes = 0;

  constructor(ranges: readonly SegmentRange[], cache: SegmentCache) {
    this.#cache = cache;
    this.#parts = new SegmentParts(ranges.map((range) => new SegmentAssembly(range, cache)));
  }

  get firstLookup(): SegmentTracker["firstLookup"] {
    return { segments: this.#cachedSegments, from: this.#sources };
  }

  get isStored(): boolean {
    return this.#isStored;
  }

  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  countBuffered(bytes: number): void {
    this.#bufferedBytes += bytes;
  }

  stateAt(index: number): State | undefined {
    return this.#parts.at(index)?.state;
  }

  firstRecent(): number {
    return this.#parts.firstRecent();
  }

  nextMissing(start: number): number {
    return this.#parts.nextMissing(start);
  }

  claimRange(index: number, maxBlocks: number, order: ClaimOrder): ClaimedRange | undefined {
    const claimed = this.#parts.cut(index, maxBlocks, order);
    const [first] = claimed;
    const last = claimed.at(-1);
    if (first === undefined || last === undefined) {
      return undefined;
    }
    const mark = (state: State) => {
      for (const part of claimed) {
        part.state = state;
      }
    };
    mark(FETCHING);
    return {
      from: first.from,
      to: last.to,
      final: last.segment.range.final,
      complete: (fetched) => this.#complete(claimed, fetched),
      discard: () => mark(MISSING),
    };
  }

  async lookUp(): Promise<void> {
    for (let at = 0; at < this.#parts.length; at += LOOKUP_SEGMENTS) {
      await this.#lookUpParts(this.#parts.slice(at, at + LOOKUP_SEGMENTS));
    }
    this.#cachedSegments = this.#parts.slice(0).filter(({ state }) => state.kind !== "missing").length;
  }

  lookUpAgain(index: number): Promise<void> {
    const next = this.#parts.slice(index, index + REPEATED_LOOKUP_SEGMENTS);
    return this.#lookUpParts(next.filter(({ state }) => state.kind === "stored"));
  }

  markSent(index: number): void {
    const part = this.#parts.at(index);
    if (part === undefined) {
      return;
    }
    if (part.state.kind === "buffered") {
      this.#bufferedBytes -= part.state.bytes.length;
    }
    part.state = SENT;
  }

  evictBefore(index: number): void {
    for (const part of this.#parts.slice(index + 1)) {
      if (part.state.kind === "buffered" && part.segment.isCached) {
        this.#bufferedBytes -= part.state.bytes.length;
        part.state = STORED;
      }
    }
  }

  #buffer(part: Part, bytes: Uint8Array): void {
    part.state = { kind: "buffered", bytes };
    this.#bufferedBytes += bytes.length;
  }

  #complete(claimed: readonly Part[], { logs, timestamps, verified }: FetchedLogs): void {
    for (const part of claimed) {
      const bytes = joinLogs(logs.slice(...findRange(logs, part)), timestamps);
      this.#buffer(part, bytes);
      part.segment.add(part, bytes, verified);
      this.#isStored &&= part.segment.canCache;
    }
  }

  async #lookUpParts(parts: readonly Part[]): Promise<void> {
    const found = await this.#cache.find(parts.map(({ segment }) => segment.range));
    parts.forEach((part, index) => {
      const segment = found[index];
      if (segment === undefined) {
        part.state = MISSING;
      } else {
        this.#useCached(part, segment, index === 0);
      }
    });
  }

  /** Buffers the logs of a cached segment. Without room only `isFirst` is buffered, because it is sent next. */
  #useCached(part: Part, { bytes, from }: Segment, isFirst: boolean): void {
    const { range } = part.segment;
    const isWhole = part.from === range.from && part.to === range.to;
    const own = isWhole ? bytes : cutSegment(bytes, part);
    this.#sources.add(from);
    part.segment.markCached();
    const hasRoom = this.#bufferedBytes + own.length <= MAX_BUFFERED_FROM_STORE_BYTES;
    if (hasRoom || isFirst) {
      this.#buffer(part, own);
    } else {
      part.state = STORED;
    }
  }
}

/** Tracks the segments of one query: missing, being fetched, stored, buffered or sent. */
export const createSegmentTracker = (
  ranges: readonly SegmentRange[],
  filterHash: string,
  heads: Heads,
  store: SegmentStore,
): SegmentTracker => new StoredSegmentTracker(ranges, new SegmentCache(filterHash, heads, store));
