import { createHash } from "node:crypto";
import type { Context } from "../core/context.ts";
import type { BlockId, Heads } from "../core/heads.ts";
import type { BlockRange } from "../core/logRange.ts";
import type { RetentionClass } from "../core/retention.ts";
import { ownerOf, type QueueOwner } from "../limits/fairQueue.ts";
import { joinLogs } from "./mergeLogs.ts";
import { type SegmentRange, segmentOf } from "./plan.ts";
import { type ScannedLog, scanLogs } from "./scanLogs.ts";

export interface Segment {
  readonly bytes: Uint8Array;
  readonly from: "memory" | "disk" | "redis";
}

/**
 * Caches segments: their logs, each with a comma in front.
 * If the store fails, `get` returns `undefined` and `set` has no effect.
 */
export interface SegmentStore {
  get(keys: readonly string[], owner?: QueueOwner): Promise<readonly (Segment | undefined)[]>;
  set(key: string, bytes: Uint8Array, retention: RetentionClass, block: BlockId | undefined): void;
}

/** A larger segment that fetch ranges cut is not cached: its parts stay in memory after they are sent. */
const MAX_ASSEMBLED_BYTES = 4 * 1024 * 1024;

/** Hashes the filter for a key: a list of a thousand addresses would make keys of 40 kB. */
export const hashFilter = (canonicalFilter: string): string =>
  createHash("sha256").update(canonicalFilter).digest("hex").slice(0, 32);

/** The key of the logs of one block. */
export const blockKey = (filterHash: string, hash: string): string => `logs:${filterHash}:${hash}`;

interface SegmentLocation {
  readonly key: string;
  /** The value has more blocks than the segment; the segment must be cut out of it. */
  readonly isWider: boolean;
}

/** The cached segments of one filter, as the view of one request sees them. */
export class CachedSegments {
  readonly #filterHash: string;
  readonly #heads: Heads;
  readonly #store: SegmentStore;
  /** Clients take turns at Redis. */
  readonly #owner: QueueOwner;

  constructor(filterHash: string, context: Pick<Context, "view" | "caller">, store: SegmentStore) {
    this.#filterHash = filterHash;
    this.#heads = context.view.heads;
    this.#store = store;
    this.#owner = ownerOf(context.caller);
  }

  /** Caches a segment. Returns false if it has no key: it is recent, and the block ring does not have its last block. */
  save(range: SegmentRange, bytes: Uint8Array): boolean {
    const last = this.#heads.at(range.to);
    const key = range.final ? this.#finalKey(range) : last && this.#recentKey(range, last);
    if (key === undefined) {
      return false;
    }
    this.#store.set(key, bytes, range.final ? "final" : "recent", last);
    return true;
  }

  /** Reads all possible locations of these segments with one request to the store. */
  async find(ranges: readonly SegmentRange[]): Promise<readonly (Segment | undefined)[]> {
    const locations = ranges.map((range) => this.#locationsOf(range));
    const segments = await this.#store.get(
      locations.flat().map(({ key }) => key),
      this.#owner,
    );
    let offset = 0;
    return ranges.map((range, index) => {
      const own = locations[index] ?? [];
      const first = offset;
      offset += own.length;
      const best = own.findIndex((_, rank) => segments[first + rank] !== undefined);
      const segment = best === -1 ? undefined : segments[first + best];
      return segment && own[best]?.isWider ? { ...segment, bytes: cutSegment(segment.bytes, range) } : segment;
    });
  }

  /**
   * Returns all keys that may have the segment, best first: its own, and that of the whole segment.
   * Each of them has a second key, under which it was cached before it became final.
   */
  #locationsOf(range: SegmentRange): SegmentLocation[] {
    const whole = segmentOf(range.from);
    const candidates = whole.from === range.from && whole.to === range.to ? [whole] : [range, whole];
    const finalized = this.#heads.finalized?.number;
    return candidates.flatMap((candidate) => {
      const isWider = candidate.to - candidate.from > range.to - range.from;
      const last = this.#heads.at(candidate.to);
      return [
        ...(finalized !== undefined && candidate.to <= finalized ? [{ key: this.#finalKey(candidate), isWider }] : []),
        ...(last === undefined ? [] : [{ key: this.#recentKey(candidate, last), isWider }]),
      ];
    });
  }

  #finalKey({ from, to }: BlockRange): string {
    return `logs:${this.#filterHash}:${from}-${to}`;
  }

  /** The hash of the last block makes it a miss after a reorganisation. */
  #recentKey(range: BlockRange, { hash }: BlockId): string {
    return `${this.#finalKey(range)}:${hash}`;
  }
}

/** One segment of a query, which is cached once all its parts are fetched. All parts are verified against one view. */
export class SegmentAssembly {
  readonly range: SegmentRange;
  readonly #cached: CachedSegments;
  /** The logs of fetched parts, by first block. */
  readonly #fetched = new Map<bigint, BlockRange & { readonly bytes: Uint8Array }>();
  #bytes = 0;
  #isCached = false;
  #canCache = true;

  constructor(range: SegmentRange, cached: CachedSegments) {
    this.range = range;
    this.#cached = cached;
  }

  /** Whether the store has, or had, the segment. */
  get isCached(): boolean {
    return this.#isCached;
  }

  /** False after a part that may not be cached, or if the segment has no key. */
  get canCache(): boolean {
    return this.#canCache;
  }

  isWhole({ from, to }: BlockRange): boolean {
    return from === this.range.from && to === this.range.to;
  }

  markCached(): void {
    this.#isCached = true;
  }

  /** Adds the logs of a part, or of the whole segment. */
  add({ from, to }: BlockRange, bytes: Uint8Array, isVerified: boolean): void {
    const isWhole = this.isWhole({ from, to });
    this.#bytes += isWhole ? 0 : bytes.length;
    if (!isVerified || this.#bytes > MAX_ASSEMBLED_BYTES) {
      this.#canCache = false;
      this.#fetched.clear();
    } else if (isWhole) {
      this.#save(bytes);
    } else if (this.#canCache && !this.#isCached) {
      this.#fetched.set(from, { from, to, bytes });
      this.#join();
    }
  }

  #join(): void {
    const fetched = [...this.#fetched.values()].sort((left, right) => Number(left.from - right.from));
    if (this.#isCovered(fetched)) {
      this.#fetched.clear();
      this.#save(Buffer.concat(fetched.map(({ bytes }) => bytes)));
    }
  }

  /** Whether the parts, in order, cover the segment without a hole or an overlap. */
  #isCovered(parts: readonly BlockRange[]): boolean {
    let next = this.range.from;
    for (const { from, to } of parts) {
      if (from !== next) {
        return false;
      }
      next = to + 1n;
    }
    return next === this.range.to + 1n;
  }

  #save(bytes: Uint8Array): void {
    this.#isCached = this.#cached.save(this.range, bytes);
    this.#canCache = this.#isCached;
  }
}

/** Returns the index of the first log in the range and the index after the last one. `logs` must be ordered. */
export const findRange = (logs: readonly ScannedLog[], { from, to }: BlockRange): [number, number] => {
  const lowerBound = (number: bigint) => {
    let low = 0;
    let high = logs.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((logs[middle]?.block ?? 0) < number) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  return [lowerBound(from), lowerBound(to + 1n)];
};

/** Cuts the logs of a range out of a cached segment. */
export const cutSegment = (segment: Uint8Array, range: BlockRange): Uint8Array => {
  const logs = scanLogs(segment);
  const [first, end] = findRange(logs, range);
  return first === 0 && end === logs.length ? segment : joinLogs(logs.slice(first, end));
};
