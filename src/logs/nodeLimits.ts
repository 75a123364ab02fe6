import { LRUCache } from "lru-cache";
import type { Node } from "../core/node.ts";
import type { LogsOptions } from "./logsOptions.ts";
import { MAX_RANGE_BLOCKS, rangeBlocksFor } from "./plan.ts";
import type { TooLarge } from "./rangeTooLarge.ts";

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

/** The limits of the nodes of one chain, learned from their own errors and responses. */
export class NodeLimits {
  readonly #options: Pick<LogsOptions, "nodes">;
  /** By node. */
  readonly #learned = new Map<string, LearnedLimits>();
  /** By node and filter. */
  readonly #searches = new LRUCache<string, SizeSearch>({ max: MAX_FILTERS, ttl: FILTER_TTL_MS });
  /** By filter. */
  readonly #densities = new LRUCache<string, Density>({ max: MAX_FILTERS, ttl: FILTER_TTL_MS });

  constructor(options: Pick<LogsOptions, "nodes">) {
    this.#options = options;
  }

  lists(node: Node): { readonly addresses: number; readonly topics: number } {
    return this.#of(node);
  }

  /** Whether a node has accepted a range of this many blocks, or has refused any. */
  isTried(blocks: number): boolean {
    return this.#options.nodes.some((node) => this.#of(node).blocks.isTried(blocks));
  }

  /** Blocks of the largest range that this node may accept for this filter. */
  blocks(node: Node, filterHash: string): number {
    const { blocks, results, bytes } = this.#of(node);
    const density = this.#densityOf(filterHash);
    const fits = Math.min(
      MAX_RANGE_BLOCKS,
      blocks.size,
      this.#searchOf(node, filterHash).size,
      (results * HEADROOM) / density.logs,
      (bytes * HEADROOM) / density.bytes,
    );
    return Math.max(1, Math.floor(fits));
  }

  /** Blocks of one fetch range, for the available node that accepts most. */
  rangeBlocks(filterHash: string): number {
    const available = this.#options.nodes.filter((node) => node.available);
    return available.length === 0
      ? MAX_RANGE_BLOCKS
      : rangeBlocksFor(Math.max(...available.map((node) => this.blocks(node, filterHash))));
  }

  bytesPerBlock(filterHash: string): number {
    return this.#densityOf(filterHash).bytes;
  }

  /** Blocks whose logs need about TARGET_RANGE_BYTES for this filter. */
  memoryBlocks(filterHash: string): number {
    return Math.max(1, Math.floor(TARGET_RANGE_BYTES / this.bytesPerBlock(filterHash)));
  }

  /** Records a successful response with its number of logs and bytes. */
  recordSuccess(node: Node, filterHash: string, blocks: number, response: Density): void {
    const learned = this.#of(node);
    learned.blocks.recordSuccess(blocks);
    this.#searchOf(node, filterHash).recordSuccess(blocks);
    const previous = this.#densityOf(filterHash);
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
    const previous = this.#densityOf(filterHash);
    const least = Math.max(bytes / blocks, previous.bytes * 2, (TARGET_RANGE_BYTES * 2) / blocks);
    this.#densities.set(filterHash, { logs: previous.logs, bytes: least });
  }

  /** Records that the node rejected a range of this many blocks as too large. */
  recordTooLarge(node: Node, filterHash: string, blocks: number, { what, limit, range }: TooLarge): void {
    const learned = this.#of(node);
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
  }

  #of({ name }: Node): LearnedLimits {
    const learned = this.#learned.get(name) ?? new LearnedLimits();
    this.#learned.set(name, learned);
    return learned;
  }

  #densityOf(filterHash: string): Density {
    return this.#densities.get(filterHash) ?? { logs: 0, bytes: 0 };
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

/** The limits of one node for any filter. */
class LearnedLimits {
  readonly blocks = new SizeSearch();
  addresses = Number.POSITIVE_INFINITY;
  topics = Number.POSITIVE_INFINITY;
  results = Number.POSITIVE_INFINITY;
  bytes = Number.POSITIVE_INFINITY;
}

/** If the bounds are closer than this factor, the search ends. */
const CLOSE_ENOUGH = 1.15;

/** Searches the largest size that a node accepts, between the largest success and the smallest failure. */
class SizeSearch {
  #declared: number | undefined;
  #lowerBound = 0;
  #upperBound = Number.POSITIVE_INFINITY;

  /** The size to request next; Infinity before the first failure. */
  get size(): number {
    if (this.#declared !== undefined) {
      return this.#declared;
    }
    if (this.#upperBound === Number.POSITIVE_INFINITY) {
      return this.#upperBound;
    }
    if (this.#lowerBound * CLOSE_ENOUGH >= this.#upperBound) {
      return this.#lowerBound;
    }
    return Math.max(1, Math.floor((this.#lowerBound + this.#upperBound) / 2));
  }

  /** Uses the limit from the node's error message. */
  declare(limit: number): void {
    this.#declared = limit;
  }

  recordFailure(size: number): void {
    if (this.#declared !== undefined && size <= this.#declared) {
      this.#declared = undefined;
    }
    this.#upperBound = Math.min(this.#upperBound, size);
    if (this.#lowerBound >= this.#upperBound) {
      this.#lowerBound = 0;
    }
  }

  recordSuccess(size: number): void {
    if (size < this.#upperBound) {
      this.#lowerBound = Math.max(this.#lowerBound, size);
    }
  }

  /** Whether a request of about this size was accepted, or any was refused. A range may end early, with a segment. */
  isTried(size: number): boolean {
    const isAccepted = this.#lowerBound * CLOSE_ENOUGH >= size;
    return isAccepted || this.#declared !== undefined || this.#upperBound !== Number.POSITIVE_INFINITY;
  }
}
