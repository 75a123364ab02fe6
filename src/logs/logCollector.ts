import type { RequestContext } from "../core/rpcSource.ts";
import type { MemoryBudget } from "../limits/memoryBudget.ts";
import { CachedSegments, type SegmentStore } from "./cachedSegments.ts";
import { LogMemory } from "./logMemory.ts";
import type { SegmentRange } from "./plan.ts";
import {
  type Demand,
  type HashedFilter,
  RangeFetches,
  type RangeFetchOptions,
  type SegmentReader,
} from "./rangeFetches.ts";
import { SegmentTable } from "./segmentTable.ts";

/** Dependencies that all queries of one chain share. */
export interface CollectOptions extends RangeFetchOptions {
  readonly store: SegmentStore;
  /** Counts received logs. Default: they are not counted. */
  readonly memory?: MemoryBudget | undefined;
}

/** The segments of one query: looked up, fetched if they are missing, sent in order. */
export interface LogCollector {
  /** Looks all segments up. */
  lookUp(): Promise<void>;
  /** Resolves when the recent segments are fetched and match the view. */
  fetchRecent(): Promise<void>;
  /** The segments' bytes in order. Memory of a chunk is released when the next chunk is requested. */
  readonly chunks: AsyncGenerator<Uint8Array, void, undefined>;
  readonly found: SegmentTable["firstLookup"];
  readonly nodes: ReadonlySet<string>;
  readonly isStored: () => boolean;
  /** Ends all requests in flight. A reader that waits for a chunk gets the error. */
  close(error?: unknown): void;
}

class OrderedLogCollector implements LogCollector, SegmentReader {
  readonly context: RequestContext;
  readonly memory: LogMemory;
  readonly signal: AbortSignal;
  readonly #segments: SegmentTable;
  readonly #fetches: RangeFetches;
  readonly #closing = new AbortController();
  #isSending = false;
  #failure: { readonly error: unknown } | undefined;
  #changed = Promise.withResolvers<void>();
  readonly chunks = this.#send();

  constructor(ranges: readonly SegmentRange[], query: HashedFilter, context: RequestContext, options: CollectOptions) {
    this.context = context;
    this.memory = new LogMemory(options.memory, context.clientId);
    this.signal = AbortSignal.any([context.signal, this.#closing.signal]);
    this.#segments = new SegmentTable(ranges, new CachedSegments(query.filterHash, context, options.store));
    this.#fetches = new RangeFetches(this.#segments, query, this, options);
    const onAbort = () => this.close(context.signal.reason);
    context.signal.addEventListener("abort", onAbort, { once: true });
    this.#closing.signal.addEventListener("abort", () => context.signal.removeEventListener("abort", onAbort));
    if (context.signal.aborted) {
      onAbort();
    }
  }

  get found(): SegmentTable["firstLookup"] {
    return this.#segments.firstLookup;
  }

  get nodes(): ReadonlySet<string> {
    return this.#fetches.nodes;
  }

  readonly isStored = (): boolean => this.#segments.isStored;

  lookUp(): Promise<void> {
    return this.#segments.lookUp();
  }

  async fetchRecent(): Promise<void> {
    this.#schedule();
    while (this.#fetches.inFlight > 0) {
      await this.#waitForChange();
    }
  }

  demand(): Demand {
    const { next } = this.#segments;
    return { start: this.#isSending ? next : this.#segments.firstRecent(), next, isSending: this.#isSending };
  }

  onEnd(failure?: { readonly error: unknown }): void {
    if (failure !== undefined) {
      this.close(failure.error);
    }
    this.#schedule();
    this.#notify();
  }

  close(error: unknown = new Error("The reader of the logs has left")): void {
    this.#failure ??= { error };
    this.#closing.abort(error);
    this.memory.end();
    this.#notify();
  }

  async *#send(): AsyncGenerator<Uint8Array, void, undefined> {
    this.#isSending = true;
    try {
      for (;;) {
        this.#schedule();
        const bytes = await this.#nextChunk();
        if (bytes === undefined) {
          return;
        }
        if (bytes.length > 0) {
          yield bytes;
        }
        this.#segments.markSent();
        this.memory.set(this.#segments.bufferedBytes);
      }
    } finally {
      this.close();
    }
  }

  /** Waits for the bytes of the segment that is sent next; undefined after the last one. */
  async #nextChunk(): Promise<Uint8Array | undefined> {
    for (;;) {
      const state = this.#segments.stateAt(this.#segments.next);
      if (state === undefined) {
        return undefined;
      }
      if (state.kind === "buffered") {
        return state.bytes;
      }
      if (state.kind === "stored") {
        await this.#segments.lookUpNext();
        this.#schedule();
      } else {
        await this.#waitForChange();
      }
    }
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  async #waitForChange(): Promise<void> {
    if (this.#failure === undefined) {
      await this.#changed.promise;
    }
    if (this.#failure !== undefined) {
      throw this.#failure.error;
    }
  }

  #schedule(): void {
    if (this.#failure === undefined && !this.signal.aborted) {
      this.#fetches.start();
    }
  }
}

/** Collects the logs of one query's segments, in ascending order. */
export const collectLogs = (
  ranges: readonly SegmentRange[],
  query: HashedFilter,
  context: RequestContext,
  options: CollectOptions,
): LogCollector => new OrderedLogCollector(ranges, query, context, options);
