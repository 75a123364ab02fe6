import type { Segment, SegmentStore } from "../../src/logs/cachedSegments.ts";

export interface MemoryStore extends SegmentStore {
  readonly entries: Map<string, { readonly bytes: Uint8Array; readonly retention: string }>;
}

/** Creates a store without limits. A test may read its entries. */
export const createMemoryStore = (): MemoryStore => {
  const entries: MemoryStore["entries"] = new Map();
  return {
    entries,
    get: async (keys) =>
      keys.map((key): Segment | undefined => {
        const entry = entries.get(key);
        return entry && { bytes: entry.bytes, from: "memory" };
      }),
    set: (key, bytes, retention) => {
      entries.set(key, { bytes, retention });
    },
  };
};
