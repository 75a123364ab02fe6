import { LRUCache } from "lru-cache";
import type { Node } from "../core/node.ts";
import { MAX_SPAN_BLOCKS } from "./plan.ts";
import type { TooLarge } from "./rangeTooLarge.ts";

/** A size that is looked for: between the largest that worked and the smallest that failed, until they are close. */
interface Search {
  declared: number | undefined;
  lowerBound: number;
  upperBound: number;
}

interface Learned {
  readonly blocks: Search;
  addresses: number;
  topics: number;
  results: number;
  bytes: number;
}

/** How many logs and bytes a block of this filter gave of late. */
interface Density {
  logs: number;
  bytes: number;
}

/** Where the sizes that work and fail are this close, nothing is gained by looking further. */
const CLOSE_ENOUGH = 1.15;
/** Room left below a limit on logs or bytes: blocks differ. */
const HEADROOM = 0.93;
/** A span that gives more than this is made smaller, so that many fit into a query's memory. */
const TARGET_SPAN_BYTES = 2 * 1024 * 1024;
const REMEMBERED_FILTERS = 1_000;
const REMEMBERED_MS = 600_000;

const createSearch = (): Search => ({ declared: undefined, lowerBound: 0, upperBound: Number.POSITIVE_INFINITY });

const sizeOf = ({ declared, lowerBound, upperBound }: Search): number => {
  if (declared !== undefined) return declared;
  if (upperBound === Number.POSITIVE_INFINITY) return upperBound;
  return lowerBound * CLOSE_ENOUGH >= upperBound ? lowerBound : Math.max(1, Math.floor((lowerBound + upperBound) / 2));
};

const failedAt = (search: Search, size: number): void => {
  if (search.declared !== undefined && size <= search.declared) search.declared = undefined;
  search.upperBound = Math.min(search.upperBound, size);
  if (search.lowerBound >= search.upperBound) search.lowerBound = 0;
};

const workedAt = (search: Search, size: number): void => {
  if (size < search.upperBound) search.lowerBound = Math.max(search.lowerBound, size);
};

/** What each node's own messages taught, kept for that node alone. Lives as long as the process. */
export const createNodeLimits = () => {
  const nodes = new Map<string, Learned>();
  const remembered = { max: REMEMBERED_FILTERS, ttl: REMEMBERED_MS };
  const searches = new LRUCache<string, Search>(remembered);
  const densities = new LRUCache<string, Density>(remembered);

  const learned = ({ name }: Node): Learned => {
    const known = nodes.get(name);
    if (known !== undefined) return known;
    const none = Number.POSITIVE_INFINITY;
    const bypassCache = { blocks: createSearch(), addresses: none, topics: none, results: none, bytes: none };
    nodes.set(name, bypassCache);
    return bypassCache;
  };

  const searchOf = ({ name }: Node, filterHash: string): Search => {
    const key = `${name} ${filterHash}`;
    const known = searches.get(key);
    if (known !== undefined) return known;
    const bypassCache = createSearch();
    searches.set(key, bypassCache);
    return bypassCache;
  };

  return {
    /** The learned limit of a range whatever the filter; Infinity for none. */
    rangeLimit: (node: Node): number => sizeOf(learned(node).blocks),
    lists: (node: Node): { readonly addresses: number; readonly topics: number } => learned(node),

    /** Blocks that this node may be asked at once with this filter. */
    blocks: (node: Node, filterHash: string): number => {
      const { blocks, results, bytes } = learned(node);
      const density = densities.get(filterHash) ?? { logs: 0, bytes: 0 };
      const fits = Math.min(
        MAX_SPAN_BLOCKS,
        sizeOf(blocks),
        sizeOf(searchOf(node, filterHash)),
        (results * HEADROOM) / density.logs,
        (bytes * HEADROOM) / density.bytes,
      );
      return Math.max(1, Math.floor(fits));
    },

    bytesPerBlock: (filterHash: string): number => densities.get(filterHash)?.bytes ?? 0,

    /** Blocks whose logs of this filter are of a size that memory has room for many times. */
    memoryBlocks: (filterHash: string): number => {
      const bytes = densities.get(filterHash)?.bytes ?? 0;
      return Math.max(1, Math.floor(TARGET_SPAN_BYTES / bytes));
    },

    worked: (node: Node, filterHash: string, blocks: number, logs: number, bytes: number): void => {
      workedAt(learned(node).blocks, blocks);
      workedAt(searchOf(node, filterHash), blocks);
      const known = densities.get(filterHash);
      const next = { logs: logs / blocks, bytes: bytes / blocks };
      // Down slowly, up at once: a span that is too large costs more than one that is a little small.
      densities.set(filterHash, {
        logs: Math.max(next.logs, ((known?.logs ?? 0) * 3 + next.logs) / 4),
        bytes: Math.max(next.bytes, ((known?.bytes ?? 0) * 3 + next.bytes) / 4),
      });
    },

    /** The logs of so many blocks were at least so many bytes, more than there was room for. */
    overflowed: (filterHash: string, blocks: number, bytes: number): void => {
      const known = densities.get(filterHash);
      const least = Math.max(bytes / blocks, (known?.bytes ?? 0) * 2, (TARGET_SPAN_BYTES * 2) / blocks);
      densities.set(filterHash, { logs: known?.logs ?? 0, bytes: least });
    },

    refused: (node: Node, filterHash: string, blocks: number, { what, limit, range }: TooLarge): void => {
      const known = learned(node);
      if (what === "addresses" || what === "topics") {
        if (limit !== undefined) known[what] = Math.min(known[what], limit);
      } else if (what === "blocks") {
        // A limit as large as what was refused is off by one; a larger one is no help.
        if (limit !== undefined && limit <= blocks) known.blocks.declared = Math.max(1, Math.min(limit, blocks - 1));
        else failedAt(known.blocks, blocks);
      } else if ((what === "results" || what === "bytes") && limit !== undefined) {
        known[what] = Math.min(known[what], limit);
      } else {
        const search = searchOf(node, filterHash);
        failedAt(search, blocks);
        if (range !== undefined) workedAt(search, Number(range.to - range.from) + 1);
      }
    },
  };
};

export type NodeLimits = ReturnType<typeof createNodeLimits>;
