import type { BlockRange } from "../core/logRange.ts";
import { type CachedSegments, cutSegment, findRange, type Segment, SegmentAssembly } from "./cachedSegments.ts";
import type { FetchedLogs } from "./fetchLogs.ts";
import { joinLogs } from "./mergeLogs.ts";
import { endOfRange, type SegmentRange, startOfRange } from "./plan.ts";

/** Limit of buffered segments from the store. The other cached segments are looked up again before they are sent. */
const MAX_BUFFERED_FROM_STORE_BYTES = 12 * 1024 * 1024;
const LOOKUP_SEGMENTS = 128;
const REPEATED_LOOKUP_SEGMENTS = 16;

type PartState =
  | { readonly kind: "missing" }
  | { readonly kind: "fetching" }
  /** The store had it at the last lookup. */
  | { readonly kind: "stored" }
  | { readonly kind: "buffered"; readonly bytes: Uint8Array }
  | { readonly kind: "sent" };

const MISSING: PartState = { kind: "missing" };
const FETCHING: PartState = { kind: "fetching" };
const STORED: PartState = { kind: "stored" };
const SENT: PartState = { kind: "sent" };

/** A segment, or the part of it that one fetch range contains. It is fetched and sent as a whole. */
interface Part extends BlockRange {
  readonly segment: SegmentAssembly;
  state: PartState;
}

/** Adjacent missing parts, and the index of the first. */
interface MissingRun extends BlockRange {
  readonly index: number;
  readonly parts: readonly Part[];
}

/** Which end of a run of missing blocks is fetched first. */
export type ClaimOrder = "ascending" | "descending";

/** Adjacent blocks that are fetched with one request. */
export interface ClaimedRange extends BlockRange {
  /** All blocks are final. */
  readonly final: boolean;
  /** Buffers the fetched logs, and stores segments that are complete and may be cached. */
  complete(fetched: FetchedLogs): void;
  /** Marks the blocks as missing again: the range was too large for memory or for the node. */
  discard(): void;
}

/**
 * The segments of one query in ascending order and without a hole, in parts: missing, being fetched, stored, buffered or sent.
 * Indexes are those of parts; a claim changes those above it.
 */
export class SegmentTable {
  readonly #cached: CachedSegments;
  readonly #parts: Part[];
  readonly #sources = new Set<Segment["from"]>();
  #found = 0;
  #next = 0;
  #isStored = true;
  #bufferedBytes = 0;

  constructor(ranges: readonly SegmentRange[], cached: CachedSegments) {
    this.#cached = cached;
    this.#parts = ranges.map((range) => {
      const { from, to } = range;
      return { from, to, segment: new SegmentAssembly(range, cached), state: MISSING };
    });
  }

  /** Segments that the store had at the first lookup, and the stores that had them. */
  get firstLookup(): { readonly segments: number; readonly from: ReadonlySet<Segment["from"]> } {
    return { segments: this.#found, from: this.#sources };
  }

  /** False if a fetched segment could not be cached. */
  get isStored(): boolean {
    return this.#isStored;
  }

  /** Bytes of buffered segments, plus the bytes that `countBuffered` added. */
  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  /** Adds bytes that no part owns yet; a negative number releases them. */
  countBuffered(bytes: number): void {
    this.#bufferedBytes += bytes;
  }

  /** Index of the part that is sent next. */
  get next(): number {
    return this.#next;
  }

  /** Returns undefined after the last part. */
  stateAt(index: number): PartState | undefined {
    return this.#parts[index]?.state;
  }

  /** Index of the first part that is not final, or -1. */
  firstRecent(): number {
    return this.#parts.findIndex(({ segment }) => !segment.range.final);
  }

  /** Index of the first missing part at or after `start`, or -1. */
  nextMissing(start: number): number {
    for (let index = start; index < this.#parts.length; index++) {
      if (this.#isMissing(index)) {
        return index;
      }
    }
    return -1;
  }

  /** Marks up to `maxBlocks` adjacent missing blocks as being fetched, from one end of the run that contains `index`. */
  claimRange(index: number, maxBlocks: number, order: ClaimOrder): ClaimedRange | undefined {
    const claimed = this.#cut(index, maxBlocks, order);
    const [first] = claimed;
    const last = claimed.at(-1);
    if (first === undefined || last === undefined) {
      return undefined;
    }
    const mark = (state: PartState) => {
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

  /** Looks all segments up. */
  async lookUp(): Promise<void> {
    for (let at = 0; at < this.#parts.length; at += LOOKUP_SEGMENTS) {
      await this.#lookUpParts(this.#parts.slice(at, at + LOOKUP_SEGMENTS));
    }
    this.#found = this.#parts.filter(({ state }) => state.kind !== "missing").length;
  }

  /** Looks up evicted parts again: the one that is sent next, and the next few. */
  lookUpNext(): Promise<void> {
    const near = this.#parts.slice(this.#next, this.#next + REPEATED_LOOKUP_SEGMENTS);
    return this.#lookUpParts(near.filter(({ state }) => state.kind === "stored"));
  }

  /** Marks the next part as sent. */
  markSent(): void {
    const part = this.#parts[this.#next++];
    if (part !== undefined) {
      this.#replace(part, SENT);
    }
  }

  /** Evicts stored parts, to make room for the one that is sent next. */
  evictAfterNext(): void {
    for (const part of this.#parts.slice(this.#next + 1)) {
      if (part.state.kind === "buffered" && part.segment.isCached) {
        this.#replace(part, STORED);
      }
    }
  }

  #isMissing(index: number): boolean {
    return this.#parts[index]?.state.kind === "missing";
  }

  /** Sets the state of a part, and counts its bytes. */
  #replace(part: Part, state: PartState): void {
    this.#bufferedBytes += sizeOf(state) - sizeOf(part.state);
    part.state = state;
  }

  /** Cuts up to `maxBlocks` blocks out of one end of the missing run that contains `index`. Splits parts at the cut. */
  #cut(index: number, maxBlocks: number, order: ClaimOrder): readonly Part[] {
    const run = this.#missingRun(index, order);
    if (run === undefined) {
      return [];
    }
    const from = order === "descending" ? startOfRange(run, maxBlocks) : run.from;
    const to = order === "ascending" ? endOfRange(run, maxBlocks) : run.to;
    const parts = run.parts.flatMap((part) => [...splitBefore(part, from, to + 1n)]);
    if (parts.length > run.parts.length) {
      this.#parts.splice(run.index, run.parts.length, ...parts);
    }
    return parts.filter((part) => part.from >= from && part.to <= to);
  }

  /** Returns the missing parts around `index`: those above it, and in descending order those below it too. */
  #missingRun(index: number, order: ClaimOrder): MissingRun | undefined {
    let first = index;
    while (order === "descending" && this.#isMissing(first - 1)) {
      first--;
    }
    let end = index;
    while (this.#isMissing(end)) {
      end++;
    }
    const parts = this.#parts.slice(first, end);
    const [lowest] = parts;
    const highest = parts.at(-1);
    return lowest && highest && end > index ? { index: first, parts, from: lowest.from, to: highest.to } : undefined;
  }

  #complete(claimed: readonly Part[], { logs, timestamps, verified }: FetchedLogs): void {
    for (const part of claimed) {
      const bytes = joinLogs(logs.slice(...findRange(logs, part)), timestamps);
      this.#replace(part, { kind: "buffered", bytes });
      part.segment.add(part, bytes, verified);
      this.#isStored &&= part.segment.canCache;
    }
  }

  async #lookUpParts(parts: readonly Part[]): Promise<void> {
    const found = await this.#cached.find(parts.map(({ segment }) => segment.range));
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
    const own = part.segment.isWhole(part) ? bytes : cutSegment(bytes, part);
    this.#sources.add(from);
    part.segment.markCached();
    const hasRoom = this.#bufferedBytes + own.length <= MAX_BUFFERED_FROM_STORE_BYTES;
    this.#replace(part, hasRoom || isFirst ? { kind: "buffered", bytes: own } : STORED);
  }
}

const sizeOf = (state: PartState): number => (state.kind === "buffered" ? state.bytes.length : 0);

/** Splits a missing part before these blocks, in ascending order. */
function* splitBefore(part: Part, ...blocks: readonly bigint[]): Generator<Part> {
  let remainder = part;
  for (const block of blocks) {
    if (remainder.from < block && block <= remainder.to) {
      yield { ...remainder, to: block - 1n };
      remainder = { ...remainder, from: block };
    }
  }
  yield remainder;
}
