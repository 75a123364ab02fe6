import { setTimeout as wait } from "node:timers/promises";
import type { Awaitable } from "../jsonrpc/call.ts";
import type { EntryStore, ValueSource } from "./cacheEntry.ts";

/** Where marks are stored. */
export type MarkStore = Pick<EntryStore, "get" | "set">;

/** The time in which a mark reaches the other replicas. */
const POLL_MS = 1_000;
/** Clocks of replicas differ, so that a mark also ends the values that the node states in this time after it. */
const CLOCK_TOLERANCE_MS = 5_000;
/** A node that lies is marked at most once in this time. */
const MIN_BETWEEN_MS = 1_000;
/** A mark lives longer than any value in Redis. */
const MARK_SECONDS = 8 * 86_400;
/** Redis may have values of nodes that the configuration does not name any more. */
const MAX_SOURCES = 1_000;

/** A value is not used if the mark of its node is not read in this time. */
const FIND_MS = 250;

const MARK = new Uint8Array();

/**
 * The nodes of all chains that were found lying, and when. A mark ends all values that the node stated before it, on all
 * replicas. Nothing is scanned: each value has the object of its node, and compares two times.
 */
export class LiarMarks {
  readonly #stores: readonly MarkStore[];
  /** By the key of the mark in the stores. */
  readonly #sources = new Map<string, ValueSource>();
  /** The sources whose mark is being read for the first time. */
  readonly #reading = new Map<string, Promise<ValueSource>>();
  readonly #timer: NodeJS.Timeout | undefined;

  /** `stores`: replicas share the marks through Redis, and the data folder has them after a restart. */
  constructor(stores: readonly MarkStore[]) {
    this.#stores = stores;
    this.#timer = stores.length === 0 ? undefined : setInterval(() => void this.exchangeAll(), POLL_MS).unref();
  }

  /** Returns the shared object of a node of this process. `prefix` is that of the chain's keys. */
  sourceOf(prefix: string, node: string, origin: string): ValueSource {
    const key = keyOf(prefix, node, origin);
    return this.#sources.get(key) ?? this.#add(key, node, origin);
  }

  /**
   * Returns the shared object of the node that stated a stored value. Undefined if there are too many nodes, or if its mark cannot
   * be read now.
   */
  find(prefix: string, { node, origin }: Pick<ValueSource, "node" | "origin">): Awaitable<ValueSource | undefined> {
    const key = keyOf(prefix, node, origin);
    if (!this.#sources.has(key) && this.#sources.size < MAX_SOURCES) {
      this.#add(key, node, origin);
    }
    const reading = this.#reading.get(key);
    return reading === undefined
      ? this.#sources.get(key)
      : Promise.race([reading, wait(FIND_MS, undefined, { ref: false })]);
  }

  /** Ends all values that the node has stated. Returns false if that was done within the last second. */
  mark(prefix: string, node: string, origin: string): boolean {
    const source = this.sourceOf(prefix, node, origin);
    const liedAtMs = Date.now() + CLOCK_TOLERANCE_MS;
    if (liedAtMs - source.liedAtMs < MIN_BETWEEN_MS) {
      return false;
    }
    source.liedAtMs = liedAtMs;
    this.#write(keyOf(prefix, node, origin), source);
    return true;
  }

  /** Exchanges the marks of all known nodes with the stores. */
  async exchangeAll(): Promise<void> {
    await Promise.all([...this.#sources].map(([key, source]) => this.#exchange(key, source)));
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** The node may have a mark that this process has not read: `find` waits for it. */
  #add(key: string, node: string, origin: string): ValueSource {
    const source = { node, origin, liedAtMs: 0 };
    this.#sources.set(key, source);
    if (this.#stores.length > 0) {
      const read = this.#exchange(key, source).then(() => {
        this.#reading.delete(key);
        return source;
      });
      this.#reading.set(key, read);
    }
    return source;
  }

  /** Takes the latest of the marks here and in the stores, for all. A write may have been lost. Never rejects. */
  async #exchange(key: string, source: ValueSource): Promise<void> {
    const marks = await Promise.all(this.#stores.map((store) => store.get(key)));
    const times = marks.map((mark) => mark?.storedAtMs ?? 0);
    source.liedAtMs = Math.max(source.liedAtMs, ...times);
    if (times.some((time) => time < source.liedAtMs)) {
      this.#write(key, source);
    }
  }

  #write(key: string, { liedAtMs }: ValueSource): void {
    for (const store of this.#stores) {
      store.set(key, { body: MARK, isFinal: true, storedAtMs: liedAtMs }, MARK_SECONDS);
    }
  }
}

/** `prefix` ends with a colon, and no key of a response begins with `liar`. */
const keyOf = (prefix: string, node: string, origin: string): string => `${prefix}liar:${origin}:${node}`;
