import { LRUCache } from "lru-cache";
import type { BlockId } from "../core/heads.ts";
import { STATED_MS, statedMs } from "../core/retention.ts";
import type { Hash } from "../ethereum/hex.ts";
import { hasSeveralOrigins } from "./agreement.ts";
import type { CacheEntry, ValueSource } from "./cacheEntry.ts";

export interface StatedValuesOptions {
  /** The nodes of the chain. */
  readonly nodes: readonly StatingNode[];
  /** Origins that must have stated a value of the state. */
  readonly agree?: 1 | 2;
}

interface StatingNode {
  readonly name: string;
  readonly origin: string;
  /** Whether the node can be asked now. Default: it can. */
  readonly available?: boolean;
}

/** A cached value that a node stated, and that no hash proves. */
export type StatedEntry = CacheEntry & { readonly source: ValueSource };

export const isStated = (entry: CacheEntry): entry is StatedEntry => entry.source !== undefined;

const MAX_BLOCKS = 10_000;

const isAvailable = ({ available }: StatingNode): boolean => available !== false;

/** Tells which node stated a cached value that no hash proves, and whether it is served. */
export class StatedValues {
  readonly #options: StatedValuesOptions;
  /** By the name of the node. */
  readonly #sources: ReadonlyMap<string, ValueSource>;
  readonly #hasSeveral: boolean;
  /** Whether two origins must agree on values of the state. */
  readonly mustAgree: boolean;
  /** The number of the newest read at a block that the second origin has not stated as it must. */
  readonly #unagreed = new LRUCache<Hash, number>({ max: MAX_BLOCKS });
  #reads = 0;

  constructor(options: StatedValuesOptions) {
    this.#options = options;
    this.#sources = new Map(options.nodes.map(({ name, origin }) => [name, { node: name, origin }]));
    this.#hasSeveral = hasSeveralOrigins(options.nodes);
    this.mustAgree = options.agree === 2 && this.#hasSeveral;
  }

  /** Returns the source of a value that the node stated; undefined if the chain has no such node. */
  sourceOf(node: string | undefined): ValueSource | undefined {
    return node === undefined ? undefined : this.#sources.get(node);
  }

  /** Whether a value may be served: its life is not over. `isState`: two origins must agree on it, if the chain requires that. */
  isServed({ source, storedAtMs, isAgreed }: StatedEntry, nowMs: number, isState: boolean): boolean {
    const needsSecond = isState && this.mustAgree && this.#hasOther(source);
    return nowMs - storedAtMs < statedMs({ isAgreed: isAgreed === true, hasOthers: this.#hasSeveral, needsSecond });
  }

  /**
   * Returns an entry of another tier; undefined if it must not be used. Another replica may have it from an origin without a node
   * here. `isProven`: a hash proves the value.
   */
  importEntry(entry: CacheEntry, isProven: boolean): CacheEntry | undefined {
    if (entry.source === undefined) {
      // An earlier version has not recorded the node.
      return isProven || !this.#hasSeveral ? entry : undefined;
    }
    const { origin } = entry.source;
    return this.#options.nodes.some((node) => node.origin === origin) ? entry : undefined;
  }

  /** Returns a name that changes when values of a block that are cached without their node must be read again. */
  epoch(nowMs: number, { hash }: BlockId): string {
    const { nodes } = this.#options;
    const period = this.#hasSeveral ? Math.floor(nowMs / STATED_MS) : 0;
    // Values that were read while one origin alone could be asked are not used once there are two.
    const isAlone = this.mustAgree && !nodes.some((node) => isAvailable(node) && this.#hasOther(node));
    return `${period}${isAlone ? ".alone" : `.${this.#unagreed.get(hash) ?? 0}`}`;
  }

  /** Called when a second origin has not stated a value of a block as it must. A value of one alone is not used again. */
  onUnagreed({ hash }: BlockId): void {
    this.#reads++;
    this.#unagreed.set(hash, this.#reads);
  }

  #hasOther({ origin }: { readonly origin: string }): boolean {
    return this.#options.nodes.some((node) => node.origin !== origin && isAvailable(node));
  }
}
