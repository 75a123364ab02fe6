import type { Segment, SegmentStore } from "../../src/logs/segments.ts";

export interface MemoryStore extends SegmentStore {
  readonly entries: Map<string, { readonly bytes: Uint8Array; readonly retention: string }>;
}

/** A store without bounds that can be looked into. */
export const createMemoryStore = (): MemoryStore => {
  const entries: MemoryStore["entries"] = new Map();
  return {
    entries,
    get: async (keys) =>
      keys.map((key): Segment | undefined => {
        const found = entries.get(key);
        return found && { bytes: found.bytes, from: "memory" };
      }),
    set: (key, bytes, retention) => {
      entries.set(key, { bytes, retention });
    },
  };
};
