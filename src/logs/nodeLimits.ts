import { LRUCache } from "lru-cache";
import type { Node } from "../core/node.ts";
import { LearnedLimits } from "./learnedLimits.ts";
import { MAX_RANGE_BLOCKS } from "./plan.ts";
import type { TooLarge } from "./rangeTooLarge.ts";
import { SizeSearch } from "./sizeSearch.ts";

/** Share of a limit on logs or bytes that a request may use, because blocks differ. */
const HEADROOM = 0.93;
/** Larger fetch ranges are made smaller, so that many fit into a query's memory. */
const TARGET_RANGE_BYTES = 2 * 1024 * 1024;
const MAX_FILTERS = 1_000;
const FILTER_TTL_MS = 600_000;

/** Average number of logs and bytes a block, from recent responses to one filter. */
interface Density {
  readonly logs: number;
  readonly bytes: number;
}

/** Learns each node's limits from its own errors and responses. Limits live as long as the process. */
export class NodeLimits {
  /** Called after the limits of a node have changed. */
  onLearn: ((node: Node, learned: LearnedLimits) => void) | undefined;
  readonly #nodes = new Map<string, LearnedLimits>();
  /** By node and filter. */
  readonly #searches = new LRUCache<string, SizeSearch>({ max: MAX_FILTERS, ttl: FILTER_TTL_MS });
  /** By filter. */
  readonly #densities = new LRUCache<string, Density>({ max: MAX_FILTERS, ttl: FILTER_TTL_MS });

  /** The learned block limit of a range for any filter; Infinity if there is none. */
  rangeLimit(node: Node): number {
    return this.#learned(node).blocks.size;
  }

  lists(node: Node): { readonly addresses: number; readonly topics: number } {
    return this.#learned(node);
  }

  /** Whether the node has accepted a range of this many blocks, or has refused any. */
  isTried(node: Node, blocks: number): boolean {
    return this.#learned(node).blocks.isTried(blocks);
  }

  /** Uses the limits that another process has learned. */
  restore(node: Node, saved: Uint8Array): void {
    this.#learned(node).restore(saved);
  }

  /** Blocks of the largest range that this node may accept for this filter. */
  blocks(node: Node, filterHash: string): number {
    const { blocks, results, bytes } = this.#learned(node);
    const density = this.#densities.get(filterHash) ?? { logs: 0, bytes: 0 };
    const fits = Math.min(
      MAX_RANGE_BLOCKS,
      blocks.size,
      this.#searchOf(node, filterHash).size,
      (results * HEADROOM) / density.logs,
      (bytes * HEADROOM) / density.bytes,
    );
    return Math.max(1, Math.floor(fits));
  }

  bytesPerBlock(filterHash: string): number {
    return this.#densities.get(filterHash)?.bytes ?? 0;
  }

  /** Blocks whose logs need about TARGET_SPAN_BYTES for this filter. */
  memoryBlocks(filterHash: string): number {
    return Math.max(1, Math.floor(TARGET_RANGE_BYTES / this.bytesPerBlock(filterHash)));
  }

  /** Records a successful response with its number of logs and bytes. */
  recordSuccess(node: Node, filterHash: string, blocks: number, response: Density): void {
    const learned = this.#learned(node);
    const { size } = learned.blocks;
    learned.blocks.recordSuccess(blocks);
    if (learned.blocks.size !== size) {
      this.onLearn?.(node, learned);
    }
    this.#searchOf(node, filterHash).recordSuccess(blocks);
    const previous = this.#densities.get(filterHash) ?? { logs: 0, bytes: 0 };
    const logs = response.logs / blocks;
    const bytes = response.bytes / blocks;
    // The average rises at once and falls slowly: a range that is too large costs more than one that is too small.
    this.#densities.set(filterHash, {
      logs: Math.max(logs, (previous.logs * 3 + logs) / 4),
      bytes: Math.max(bytes, (previous.bytes * 3 + bytes) / 4),
    });
  }

  /** Records a response that did not fit into memory; `bytes` is the part of it that was read. */
  recordOverflow(filterHash: string, blocks: number, bytes: number): void {
    const previous = this.#densities.get(filterHash) ?? { logs: 0, bytes: 0 };
    const least = Math.max(bytes / blocks, previous.bytes * 2, (TARGET_RANGE_BYTES * 2) / blocks);
    this.#densities.set(filterHash, { logs: previous.logs, bytes: least });
  }

  /** Records that the node rejected a range of this many blocks as too large. */
  recordTooLarge(node: Node, filterHash: string, blocks: number, { what, limit, range }: TooLarge): void {
    const learned = this.#learned(node);
    if (what === "blocks") {
      // A limit equal to the rejected size is off by one. A larger limit does not help.
      if (limit !== undefined && limit <= blocks) {
        learned.blocks.declare(Math.max(1, Math.min(limit, blocks - 1)));
      } else {
        learned.blocks.recordFailure(blocks);
      }
    } else if (what !== "time" && limit !== undefined) {
      learned[what] = Math.min(learned[what], limit);
    } else if (what !== "addresses" && what !== "topics") {
      const search = this.#searchOf(node, filterHash);
      search.recordFailure(blocks);
      if (range !== undefined) {
        search.recordSuccess(Number(range.to - range.from) + 1);
      }
    }
    this.onLearn?.(node, learned);
  }

  #learned({ name }: Node): LearnedLimits {
    const learned = this.#nodes.get(name);
    if (learned !== undefined) {
      return learned;
    }
    const created = new LearnedLimits();
    this.#nodes.set(name, created);
    return created;
  }

  #searchOf({ name }: Node, filterHash: string): SizeSearch {
    const key = `${name} ${filterHash}`;
    const search = this.#searches.get(key);
    if (search !== undefined) {
      return search;
    }
    const created = new SizeSearch();
    this.#searches.set(key, created);
    return created;
  }
}

export const createNodeLimits = (): NodeLimits => new NodeLimits();
