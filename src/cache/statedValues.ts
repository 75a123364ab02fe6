import { type Awaitable, whenKnown } from "../jsonrpc/awaitable.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { CacheEntry, ValueSource } from "./cacheEntry.ts";
import type { LiarMarks } from "./liarMarks.ts";

export interface StatedValuesOptions {
  /** Name of the chain, for metrics. */
  readonly chain: string;
  readonly marks: LiarMarks;
  /** See `createKeyPrefix`. It is read for every call, because a chain reset changes it. */
  readonly prefix: string;
  /** The nodes of the chain, in the order of the configuration. */
  readonly nodes: readonly StatingNode[];
  /** The life of a value that one origin stated, if there are others. */
  readonly unconfirmedMs: number;
  /** Origins that must have stated a value of the state. */
  readonly stateAgree?: 1 | 2;
  readonly telemetry: Telemetry;
}

interface StatingNode {
  readonly name: string;
  readonly origin: string;
  readonly priority: number;
  /** Whether the node can be asked now. Default: it can. */
  readonly available?: boolean;
}

/** A cached value that a node stated, and that no hash proves. */
export type StatedEntry = CacheEntry & { readonly source: ValueSource };

export const isStated = (entry: CacheEntry): entry is StatedEntry => entry.source !== undefined;

const isAvailable = ({ available }: StatingNode): boolean => available !== false;

/**
 * Decides how long the values of one chain are served that no hash proves. If there are several origins, a value of one is
 * served for minutes, and a value of two for the time of its retention class. A mark ends the values of a lying node.
 */
export class StatedValues {
  readonly #options: StatedValuesOptions;
  /** Ranks of the origins, by the tier and the position of their first node. */
  readonly #ranks = new Map<string, number>();
  readonly #origins: ReadonlyMap<string, string>;
  readonly #lifeMs: number;
  /** Whether two origins must agree on values of the state. */
  readonly mustAgree: boolean;
  /** The nodes of this process, for one prefix. */
  #own = new Map<string, ValueSource>();
  #ownPrefix = "";

  constructor(options: StatedValuesOptions) {
    this.#options = options;
    this.#origins = new Map(options.nodes.map(({ name, origin }) => [name, origin]));
    for (const { origin } of options.nodes.toSorted((a, b) => a.priority - b.priority)) {
      if (!this.#ranks.has(origin)) {
        this.#ranks.set(origin, this.#ranks.size);
      }
    }
    this.mustAgree = options.stateAgree === 2 && this.#ranks.size > 1;
    this.#lifeMs = this.#ranks.size > 1 ? options.unconfirmedMs : Number.POSITIVE_INFINITY;
  }

  /** Returns the source of a value that the node stated; undefined if the chain has no such node. */
  sourceOf(node: string | undefined): ValueSource | undefined {
    if (node === undefined) {
      return undefined;
    }
    const { prefix } = this.#options;
    if (prefix !== this.#ownPrefix) {
      this.#own = new Map();
      this.#ownPrefix = prefix;
    }
    return this.#own.get(node) ?? this.#addOwn(node, prefix);
  }

  /**
   * Whether a stated value may be served: its node was not found lying since, and its life is not over. If two origins must agree
   * on values of the state, the value of one is served while no other origin can be asked.
   */
  isServed({ source, storedAtMs, isConfirmed }: StatedEntry, nowMs: number, isState: boolean): boolean {
    if (storedAtMs <= source.liedAtMs || isConfirmed === true) {
      return storedAtMs > source.liedAtMs;
    }
    return nowMs - storedAtMs < this.#lifeMs && !(isState && this.mustAgree && this.#hasOther(source));
  }

  /** Whether a second origin may confirm the value, because only its life is over. */
  isConfirmable({ source, storedAtMs, isConfirmed }: StatedEntry, isState: boolean): boolean {
    return storedAtMs > source.liedAtMs && isConfirmed !== true && !(isState && this.mustAgree);
  }

  /**
   * Returns an entry from Redis with the shared object of its node; undefined if it must not be used.
   * `isProven`: a hash proves the value.
   */
  adopt(entry: CacheEntry, isProven: boolean): Awaitable<CacheEntry | undefined> {
    if (entry.source === undefined) {
      // An earlier version has not recorded the node.
      return isProven || this.#lifeMs === Number.POSITIVE_INFINITY ? entry : undefined;
    }
    return whenKnown(
      this.#options.marks.find(this.#options.prefix, entry.source),
      (source) => source && { ...entry, source },
    );
  }

  /** Ends all values that the node has stated. */
  markLiar(node: string): void {
    const { chain, marks, prefix, telemetry } = this.#options;
    const origin = this.#origins.get(node);
    if (origin !== undefined && marks.mark(prefix, node, origin)) {
      telemetry.metrics.cacheMarks.inc({ chain, node });
      telemetry.log.warn({ chain, node }, "the cached values of this node end: it returned a wrong value");
    }
  }

  /** Returns the one of two origins whose node has the better tier, or is configured first. */
  preferred(one: string, other: string): string {
    const rankOf = (origin: string): number => this.#ranks.get(origin) ?? this.#ranks.size;
    return rankOf(one) <= rankOf(other) ? one : other;
  }

  /** Returns a name that changes when values that are cached without their node must be read again. */
  epoch(nowMs: number): string {
    const { unconfirmedMs } = this.#options;
    const period = this.#ranks.size > 1 && unconfirmedMs > 0 ? Math.floor(nowMs / unconfirmedMs) : 0;
    const { nodes } = this.#options;
    const marks = nodes.reduce((sum, { name }) => sum + (this.sourceOf(name)?.liedAtMs ?? 0), 0);
    // Values that were read while one origin alone could be asked are not used once there are two.
    const isAlone = this.mustAgree && !nodes.some((node) => isAvailable(node) && this.#hasOther(node));
    return `${period}.${marks}${isAlone ? ".alone" : ""}`;
  }

  #hasOther({ origin }: { readonly origin: string }): boolean {
    return this.#options.nodes.some((node) => node.origin !== origin && isAvailable(node));
  }

  #addOwn(node: string, prefix: string): ValueSource | undefined {
    const origin = this.#origins.get(node);
    if (origin === undefined) {
      return undefined;
    }
    const source = this.#options.marks.sourceOf(prefix, node, origin);
    this.#own.set(node, source);
    return source;
  }
}
