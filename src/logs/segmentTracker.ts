import type { Heads } from "../core/heads.ts";
import type { BlockRange } from "../core/logRange.ts";
import type { FetchedLogs } from "./fetchLogs.ts";
import { blocksOf } from "./fetchRange.ts";
import { joinLogs } from "./mergeLogs.ts";
import { countSegments, type SegmentRange, splitRange } from "./plan.ts";
import { SegmentCache } from "./segmentCache.ts";
import { findRange, type Segment, type SegmentStore } from "./segments.ts";

/** Limit of buffered segments from the store. The other cached segments are looked up again before they are sent. */
const MAX_BUFFERED_FROM_STORE_BYTES = 12 * 1024 * 1024;
const LOOKUP_SEGMENTS = 128;
const REPEATED_LOOKUP_SEGMENTS = 16;

type State =
  | { readonly kind: "missing" }
  | { readonly kind: "fetching" }
  /** The store had it at the last lookup. */
  | { readonly kind: "stored" }
  | { readonly kind: "buffered"; readonly bytes: Uint8Array }
  | { readonly kind: "sent" };

interface Entry {
  readonly range: SegmentRange;
  /** False for a part of a segment that is too large for memory. */
  readonly isSegment: boolean;
  state: State;
}

/** Adjacent segments that are fetched with one request. */
export interface ClaimedRange extends BlockRange {
  readonly final: boolean;
  /** Buffers the fetched logs, and stores those that may be cached. */
  complete(fetched: FetchedLogs): void;
  /** Marks the segments as missing again, because the range did not fit into memory. */
  discard(): void;
}

export interface RangeLimits {
  /** A segment with more blocks is fetched in parts. */
  readonly memoryBlocks: number;
  readonly rangeBlocks: number;
}

/** The segments of one query in ascending order, each with its state. */
export interface SegmentTracker {
  /** Segments that the store had at the first lookup, and the stores that had them. */
  readonly firstLookup: { readonly segments: number; readonly from: ReadonlySet<Segment["from"]> };
  /** False after a fetched range could not be cached. */
  readonly isStored: boolean;
  /** Bytes of buffered segments, plus the bytes that `countBuffered` added. */
  readonly bufferedBytes: number;
  /** Adds bytes that no segment owns yet; a negative number releases them. */
  countBuffered(bytes: number): void;
  stateAt(index: number): State | undefined;
  /** Index of the first segment that is not final, or -1. */
  firstRecent(): number;
  /** Index of the first missing segment at or after `start`, or -1. */
  nextMissing(start: number): number;
  /** Marks a range of missing segments, beginning at `index`, as being fetched. */
  claimRange(index: number, limits: RangeLimits): ClaimedRange | undefined;
  /** Looks all segments up. */
  lookUp(): Promise<void>;
  /** Looks up evicted segments again: the one at `index` and the next few. */
  lookUpAgain(index: number): Promise<void>;
  markSent(index: number): void;
  /** Evicts stored segments after `index`, to make room for the one that is sent next. */
  evictBefore(index: number): void;
}

const MISSING: State = { kind: "missing" };

/** Splits a segment with too many logs for memory into parts. Parts are not cached. */
const splitEntry = ({ range }: Entry, maxBlocks: number): Entry[] =>
  splitRange(range, maxBlocks).map((part) => ({
    range: { ...part, final: range.final },
    isSegment: false,
    state: MISSING,
  }));

class StoredSegmentTracker implements SegmentTracker {
  readonly #cache: SegmentCache;
  readonly #entries: Entry[];
  readonly #sources = new Set<Segment["from"]>();
  #cachedSegments = 0;
  #isStored = true;
  #bufferedBytes = 0;

  constructor(ranges: readonly SegmentRange[], cache: SegmentCache) {
    this.#cache = cache;
    this.#entries = ranges.map((range) => ({ range, isSegment: true, state: MISSING }));
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
    return this.#entries[index]?.state;
  }

  firstRecent(): number {
    return this.#entries.findIndex(({ range }) => !range.final);
  }

  nextMissing(start: number): number {
    return this.#entries.findIndex(({ state }, index) => index >= start && state.kind === "missing");
  }

  claimRange(index: number, { memoryBlocks, rangeBlocks }: RangeLimits): ClaimedRange | undefined {
    this.#splitLarge(index, memoryBlocks);
    const length = countSegments((at) => this.#missingAt(at), index, Math.min(memoryBlocks, rangeBlocks));
    const claimed = this.#entries.slice(index, index + length);
    const first = claimed[0]?.range;
    const last = claimed.at(-1)?.range;
    if (first === undefined || last === undefined) {
      return undefined;
    }
    const mark = (kind: "missing" | "fetching") => {
      for (const entry of claimed) {
        entry.state = { kind };
      }
    };
    mark("fetching");
    return {
      from: first.from,
      to: last.to,
      final: first.final,
      complete: (fetched) => this.#complete(claimed, fetched),
      discard: () => mark("missing"),
    };
  }

  async lookUp(): Promise<void> {
    for (let at = 0; at < this.#entries.length; at += LOOKUP_SEGMENTS) {
      await this.#lookUpEntries(this.#entries.slice(at, at + LOOKUP_SEGMENTS));
    }
    this.#cachedSegments = this.#entries.filter(({ state }) => state.kind !== "missing").length;
  }

  lookUpAgain(index: number): Promise<void> {
    const next = this.#entries.slice(index, index + REPEATED_LOOKUP_SEGMENTS);
    return this.#lookUpEntries(next.filter(({ state }) => state.kind === "stored"));
  }

  markSent(index: number): void {
    const entry = this.#entries[index];
    if (entry === undefined) {
      return;
    }
    if (entry.state.kind === "buffered") {
      this.#bufferedBytes -= entry.state.bytes.length;
    }
    entry.state = { kind: "sent" };
  }

  evictBefore(index: number): void {
    for (const entry of this.#entries.slice(index + 1)) {
      const { state, range, isSegment } = entry;
      if (state.kind !== "buffered" || !isSegment) {
        continue;
      }
      if (!this.#cache.accepts(range)) {
        continue;
      }
      this.#bufferedBytes -= state.bytes.length;
      entry.state = { kind: "stored" };
    }
  }

  #missingAt(index: number): SegmentRange | undefined {
    const entry = this.#entries[index];
    return entry?.state.kind === "missing" ? entry.range : undefined;
  }

  #splitLarge(index: number, maxBlocks: number): void {
    const entry = this.#entries[index];
    if (entry === undefined || blocksOf(entry.range) <= maxBlocks) {
      return;
    }
    this.#entries.splice(index, 1, ...splitEntry(entry, maxBlocks));
  }

  #buffer(entry: Entry, bytes: Uint8Array): void {
    entry.state = { kind: "buffered", bytes };
    this.#bufferedBytes += bytes.length;
  }

  #complete(claimed: readonly Entry[], { logs, timestamps, verified }: FetchedLogs): void {
    for (const entry of claimed) {
      const bytes = joinLogs(logs.slice(...findRange(logs, entry.range)), timestamps);
      this.#buffer(entry, bytes);
      const isCached = entry.isSegment && verified && this.#cache.save(entry.range, bytes);
      this.#isStored &&= isCached;
    }
  }

  async #lookUpEntries(entries: readonly Entry[]): Promise<void> {
    const found = await this.#cache.find(entries.map(({ range }) => range));
    entries.forEach((entry, index) => {
      const segment = found[index];
      if (segment === undefined) {
        entry.state = MISSING;
      } else {
        this.#useCached(entry, segment, index === 0);
      }
    });
  }

  /** Buffers a cached segment. Without room only `isFirst` is buffered, because it is sent next. */
  #useCached(entry: Entry, { bytes, from }: Segment, isFirst: boolean): void {
    this.#sources.add(from);
    const hasRoom = this.#bufferedBytes + bytes.length <= MAX_BUFFERED_FROM_STORE_BYTES;
    if (hasRoom || isFirst) {
      this.#buffer(entry, bytes);
    } else {
      entry.state = { kind: "stored" };
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
