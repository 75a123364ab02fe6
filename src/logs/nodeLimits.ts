import { LRUCache } from "lru-cache";
import type { Node } from "../core/node.ts";
import { type Fields, formatJson, isFields, parseJson } from "../json/jsonBytes.ts";
import type { LogsOptions } from "./logsOptions.ts";
import { MAX_RANGE_BLOCKS, rangeBlocksFor } from "./plan.ts";
import type { TooLarge } from "./rangeTooLarge.ts";

/** Share of a limit on logs or bytes that a request may use, because blocks differ. */
const HEADROOM = 0.93;
/** Larger fetch ranges are made smaller, so that many fit into a query's memory. */
const TARGET_RANGE_BYTES = 2 * 1024 * 1024;
const MAX_FILTERS = 1_000;
const FILTER_TTL_MS = 600_000;
/** A provider may raise a limit: after this time other processes learn it again. */
const SHARED_SECONDS = 86_400;

/** Average number of logs and bytes a block, from recent responses to one filter. */
interface Density {
  readonly logs: number;
  readonly bytes: number;
}

/**
 * The limits of the nodes of one chain, learned from their own errors and responses. Other processes read them
 * from Redis, or the next one from disk, so that they need no refused request.
 */
export class NodeLimits {
  readonly #options: Pick<LogsOptions, "chain" | "nodes" | "sharedValues" | "telemetry">;
  /** By node. */
  readonly #learned = new Map<string, LearnedLimits>();
  /** By node and filter. */
  readonly #searches = new LRUCache<string, SizeSearch>({ max: MAX_FILTERS, ttl: FILTER_TTL_MS });
  /** By filter. */
  readonly #densities = new LRUCache<string, Density>({ max: MAX_FILTERS, ttl: FILTER_TTL_MS });

  constructor(options: Pick<LogsOptions, "chain" | "nodes" | "sharedValues" | "telemetry">) {
    this.#options = options;
  }

  /** Reads the limits of nodes that were not asked for as many blocks yet. Never rejects. */
  async load(blocks: number): Promise<void> {
    const { nodes, sharedValues } = this.#options;
    const untried = nodes.filter((node) => !this.#of(node).blocks.isTried(Math.min(blocks, MAX_RANGE_BLOCKS)));
    if (sharedValues === undefined || untried.length === 0) {
      return;
    }
    await Promise.all(
      untried.map(async (node) => {
        const saved = await sharedValues.get(sharedKey(node));
        if (saved !== undefined) {
          this.#of(node).restore(saved);
          this.#report(node);
        }
      }),
    );
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
    const { size } = learned.blocks;
    learned.blocks.recordSuccess(blocks);
    if (learned.blocks.size !== size) {
      this.#share(node);
    }
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
    this.#share(node);
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

  #share(node: Node): void {
    this.#report(node);
    this.#options.sharedValues?.set(sharedKey(node), this.#of(node).save(), SHARED_SECONDS);
  }

  #report(node: Node): void {
    const { chain, telemetry } = this.#options;
    const { size } = this.#of(node).blocks;
    telemetry.metrics.upstreamSpanLimit.set({ chain, node: node.name }, Number.isFinite(size) ? size : 0);
  }
}

const sharedKey = ({ name }: Node): string => `log-limits:${name}`;

/** The limits of a node that are single numbers; Infinity if they are not known. */
const NUMBERS = ["addresses", "topics", "results", "bytes"] as const;

const parseFields = (bytes: Uint8Array): Fields => {
  try {
    const value = parseJson(bytes);
    return isFields(value) ? value : {};
  } catch {
    return {};
  }
};

/** The limits of one node for any filter. */
class LearnedLimits {
  readonly blocks = new SizeSearch();
  addresses = Number.POSITIVE_INFINITY;
  topics = Number.POSITIVE_INFINITY;
  results = Number.POSITIVE_INFINITY;
  bytes = Number.POSITIVE_INFINITY;

  /** Formats the limits for another process. */
  save(): Uint8Array {
    const numbers = NUMBERS.filter((name) => Number.isFinite(this[name])).map((name) => [name, this[name]]);
    return formatJson({ ...this.blocks.save(), ...Object.fromEntries(numbers) });
  }

  /** Reads the limits that another process saved. The lower of two numbers is used. */
  restore(bytes: Uint8Array): void {
    const saved = parseFields(bytes);
    this.blocks.restore(saved);
    for (const name of NUMBERS) {
      const value = saved[name];
      if (typeof value === "number" && value > 0) {
        this[name] = Math.min(this[name], value);
      }
    }
  }
}

/** If the bounds are closer than this factor, the search ends. */
const CLOSE_ENOUGH = 1.15;

/** A search that another process continues. */
interface SavedSearch {
  readonly declared?: number | undefined;
  readonly lowerBound: number;
  readonly upperBound?: number | undefined;
}

const isSize = (value: unknown): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0;

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

  save(): SavedSearch {
    const upperBound = Number.isFinite(this.#upperBound) ? this.#upperBound : undefined;
    return { declared: this.#declared, lowerBound: this.#lowerBound, upperBound };
  }

  /** Continues a saved search. Does nothing if this process has found a limit, or if the values are not sizes. */
  restore({ declared, lowerBound, upperBound }: Readonly<Record<keyof SavedSearch, unknown>>): void {
    if (this.#declared !== undefined || Number.isFinite(this.#upperBound)) {
      return;
    }
    this.#declared = isSize(declared) && declared > 0 ? declared : undefined;
    this.#upperBound = isSize(upperBound) && upperBound > 0 ? upperBound : Number.POSITIVE_INFINITY;
    if (isSize(lowerBound) && lowerBound < this.#upperBound) {
      this.#lowerBound = Math.max(this.#lowerBound, lowerBound);
    }
  }
}
