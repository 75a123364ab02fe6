import { createHash } from "node:crypto";
import type { BlockId, Heads } from "../core/heads.ts";
import type { BlockRange } from "../core/logRange.ts";
import type { RetentionClass } from "../core/retention.ts";
import type { QueueOwner } from "../limits/fairQueue.ts";
import { joinLogs } from "./mergeLogs.ts";
import type { SegmentRange } from "./plan.ts";
import { segmentOf } from "./plan.ts";
import { type ScannedLog, scanLogs } from "./scanLogs.ts";

export interface Segment {
  readonly bytes: Uint8Array;
  readonly from: "memory" | "redis";
}

/**
 * Caches segments: their logs, each with a comma in front.
 * If the store fails, `get` returns `undefined` and `set` has no effect.
 */
export interface SegmentStore {
  get(keys: readonly string[], owner?: QueueOwner): Promise<readonly (Segment | undefined)[]>;
  set(key: string, bytes: Uint8Array, retention: RetentionClass, block: BlockId | undefined): void;
}

/** Hashes the filter for a key: a list of a thousand addresses would make keys of 40 kB. */
export const hashFilter = (canonicalFilter: string): string =>
  createHash("sha256").update(canonicalFilter).digest("hex").slice(0, 32);

const finalKey = (filterHash: string, { from, to }: BlockRange) => `logs:${filterHash}:${from}-${to}`;
const recentKey = (filterHash: string, { from, to }: BlockRange, hash: string) =>
  `${finalKey(filterHash, { from, to })}:${hash}`;

export const blockKey = (filterHash: string, hash: string): string => `logs:${filterHash}:${hash}`;

/**
 * Returns the key of a fetched segment; the key of a recent segment contains the hash of its last block.
 * Returns undefined if the block ring does not have that block.
 */
export const keyOf = (filterHash: string, range: SegmentRange, heads: Heads): string | undefined => {
  if (range.final) {
    return finalKey(filterHash, range);
  }
  const last = heads.at(range.to);
  return last && recentKey(filterHash, range, last.hash);
};

export interface SegmentLocation {
  readonly key: string;
  /** The value has more blocks than the segment; the segment must be cut out of it. */
  readonly isWider: boolean;
}

/**
 * Returns all keys that may have the segment, best first: its own, and that of the whole segment.
 * Each of them has a second key, under which it was cached before it became final.
 */
export const segmentLocations = (filterHash: string, range: SegmentRange, heads: Heads): SegmentLocation[] => {
  const whole = segmentOf(range.from);
  const candidates = whole.from === range.from && whole.to === range.to ? [whole] : [range, whole];
  const finalized = heads.finalized?.number;
  return candidates.flatMap((candidate) => {
    const isWider = candidate.to - candidate.from > range.to - range.from;
    const last = heads.at(candidate.to);
    return [
      ...(finalized !== undefined && candidate.to <= finalized
        ? [{ key: finalKey(filterHash, candidate), isWider }]
        : []),
      ...(last === undefined ? [] : [{ key: recentKey(filterHash, candidate, last.hash), isWider }]),
    ];
  });
};

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
