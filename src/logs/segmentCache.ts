import type { Heads } from "../core/heads.ts";
import type { BlockRange } from "../core/logRange.ts";
import type { SegmentRange } from "./plan.ts";
import { cutSegment, keyOf, type Segment, type SegmentStore, segmentLocations } from "./segments.ts";

/** The cached segments of one filter, as one view sees them. */
export class SegmentCache {
  readonly #filterHash: string;
  readonly #heads: Heads;
  readonly #store: SegmentStore;

  constructor(filterHash: string, heads: Heads, store: SegmentStore) {
    this.#filterHash = filterHash;
    this.#heads = heads;
    this.#store = store;
  }

  /** Caches a segment. Returns false if it has no key. */
  save(range: SegmentRange, bytes: Uint8Array): boolean {
    const key = keyOf(this.#filterHash, range, this.#heads);
    if (key === undefined) {
      return false;
    }
    this.#store.set(key, bytes, range.final ? "final" : "recent", this.#heads.at(range.to));
    return true;
  }

  /** Reads all possible locations of these segments with one request to the store. */
  async find(ranges: readonly SegmentRange[]): Promise<readonly (Segment | undefined)[]> {
    const locations = ranges.map((range) => segmentLocations(this.#filterHash, range, this.#heads));
    const segments = await this.#store.get(locations.flat().map(({ key }) => key));
    let offset = 0;
    return ranges.map((range, index) => {
      const own = locations[index] ?? [];
      const first = offset;
      offset += own.length;
      const best = own.findIndex((_, rank) => segments[first + rank] !== undefined);
      return best === -1 ? undefined : this.#cut(segments[first + best], range, own[best]?.isWider === true);
    });
  }

  #cut(segment: Segment | undefined, range: BlockRange, isWider: boolean): Segment | undefined {
    return segment && isWider ? { ...segment, bytes: cutSegment(segment.bytes, range) } : segment;
  }
}
