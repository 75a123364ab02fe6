import type { BlockId } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";
import {
  FILTER_EXPIRY_MS,
  type FilterAdvance,
  type FilterStore,
  formatQuery,
  MAX_FILTER_BLOCKS,
  MAX_FILTER_BYTES,
  type NewFilter,
  weightOfQuery,
} from "./filterStore.ts";

export interface LocalFiltersOptions {
  readonly maxPerClient: number;
  readonly maxBytesPerClient: number;
  readonly maxFilters?: number;
  readonly expiryMs?: number;
  readonly now?: () => number;
}

interface Filter extends Pick<NewFilter, "clientId" | "query"> {
  readonly version: number;
  /** Bytes that count towards the limit of the client. */
  readonly weight: number;
  readonly blocks: readonly BlockId[];
  /** By block hash. Empty if there was no room. */
  readonly logs: ReadonlyMap<Hash, Uint8Array>;
  readonly expiresAtMs: number;
}

const MAX_FILTERS = 10_000;
const NO_ROOM = new Uint8Array();

/** Returns the filter after a poll. Evicts blocks and logs that no reorganisation can remove. */
const advanceFilter = (filter: Filter, { stayed, added, logs: addedLogs, finalized }: FilterAdvance): Filter => {
  const blocks = [...filter.blocks.slice(0, stayed), ...added]
    .filter(({ number }, at, { length }) => number > finalized || at === length - 1)
    .slice(-MAX_FILTER_BLOCKS);
  const blockHashes = new Set(blocks.map(({ hash }) => hash));
  const logs = new Map([...filter.logs].filter(([hash]) => blockHashes.has(hash)));
  let bytes = logs.values().reduce((sum, { length }) => sum + length, 0);
  for (const { block, logs: text } of addedLogs) {
    const hasRoom = bytes + text.length <= MAX_FILTER_BYTES;
    if (hasRoom) {
      bytes += text.length;
    }
    logs.set(block.hash, hasRoom ? text : NO_ROOM);
  }
  return { ...filter, version: filter.version + 1, blocks, logs };
};

/** Stores filters in this process. Another replica does not have them. */
export const createLocalFilters = (options: LocalFiltersOptions): FilterStore => {
  const {
    maxPerClient,
    maxBytesPerClient,
    maxFilters = MAX_FILTERS,
    expiryMs = FILTER_EXPIRY_MS,
    now = Date.now,
  } = options;
  /** In the order of their expiry. */
  const filters = new Map<string, Filter>();

  /** Evicts expired filters, then returns the filter with this id. */
  const find = (id: string): Filter | undefined => {
    const atMs = now();
    for (const [each, { expiresAtMs }] of filters) {
      if (expiresAtMs > atMs) {
        break;
      }
      filters.delete(each);
    }
    return filters.get(id);
  };

  const store = (id: string, filter: Filter): void => {
    filters.delete(id);
    filters.set(id, { ...filter, expiresAtMs: now() + expiryMs });
  };

  return {
    add: async (id, { clientId, query, blocks }) => {
      find(id);
      const own = [...filters.values()].filter((filter) => filter.clientId === clientId);
      const weight = weightOfQuery(formatQuery(query));
      const bytes = own.reduce((sum, filter) => sum + filter.weight, weight);
      if (filters.size >= maxFilters || own.length >= maxPerClient || bytes > maxBytesPerClient) {
        return false;
      }
      store(id, { clientId, query, blocks, weight, version: 0, logs: new Map(), expiresAtMs: 0 });
      return true;
    },
    read: async (id) => {
      const filter = find(id);
      if (filter === undefined) {
        return undefined;
      }
      store(id, filter);
      return { query: filter.query, version: String(filter.version), last: filter.blocks.at(-1) };
    },
    blocks: async (id, version) => {
      const filter = find(id);
      return String(filter?.version) === version ? filter?.blocks : undefined;
    },
    logs: async (id, blocks) => {
      const filter = find(id);
      return blocks.map(({ hash }) => filter?.logs.get(hash));
    },
    advance: async (id, advance) => {
      const filter = find(id);
      if (filter === undefined || String(filter.version) !== advance.from) {
        return false;
      }
      store(id, advanceFilter(filter, advance));
      return true;
    },
    remove: async (id) => filters.delete(id),
  };
};
