import type { RequestContext } from "../core/rpcSource.ts";
import type { LogFilter } from "../ethereum/logFilter.ts";
import { ownerOf } from "../limits/fairQueue.ts";
import type { SlotOwner } from "../limits/fairScheduler.ts";
import type { FetchedLogs, FetchLogs } from "./fetchLogs.ts";
import { blocksOf } from "./fetchRange.ts";
import { FetchRetries } from "./fetchRetries.ts";
import type { NodeLimits } from "./nodeLimits.ts";
import type { SegmentRange } from "./plan.ts";
import type { FetchContext } from "./requestLogs.ts";
import type { SegmentStore } from "./segments.ts";
import { type ClaimedRange, createSegmentTracker, type SegmentTracker } from "./segmentTracker.ts";

/** Limit of one query's fetched and cached logs that are not sent yet. */
const MAX_BUFFERED_BYTES = 32 * 1024 * 1024;
/** Above this size no further range is requested, so that responses in flight still find room. */
const ADMIT_BELOW_BYTES = 20 * 1024 * 1024;
/** Recent segments are fetched before older ones, up to this size. */
const RECENT_FIRST_BYTES = 10 * 1024 * 1024;

class NoRoom extends Error {}
/** Created once: an abort without a reason creates an error with a stack each time. */
const ENDED = new Error("The fetch range has ended");

/** Dependencies that all queries of one chain share. */
export interface CollectOptions {
  readonly store: SegmentStore;
  readonly fetchLogs: FetchLogs;
  readonly limits: NodeLimits;
  /** Blocks of one fetch range, from the limits of the nodes. */
  readonly rangeBlocks: (filterHash: string) => number;
  /** Limit of one query's fetch ranges in flight. */
  readonly maxRanges: number;
}

export interface LogQuery {
  readonly filter: LogFilter;
  readonly filterHash: string;
}

/** The store of one client: it takes turns with others at Redis. */
const storeFor = (context: RequestContext, { store }: Pick<CollectOptions, "store">): SegmentStore => ({
  get: (keys) => store.get(keys, ownerOf(context)),
  set: (...args) => store.set(...args),
});

/** The segments of one query: looked up, fetched if they are missing, sent in order. */
export interface LogCollector {
  /** Looks all segments up. */
  lookUp(): Promise<void>;
  /** Resolves when the recent segments are fetched and match the view. */
  fetchRecent(): Promise<void>;
  /** The segments' bytes in order. Memory of a chunk is released when the next chunk is requested. */
  readonly chunks: AsyncGenerator<Uint8Array, void, undefined>;
  readonly found: SegmentTracker["firstLookup"];
  readonly nodes: ReadonlySet<string>;
  readonly isStored: () => boolean;
  /** Ends all requests in flight. A reader that waits for a chunk gets the error. */
  close(error?: unknown): void;
}

class OrderedLogCollector implements LogCollector {
  readonly #query: LogQuery;
  readonly #context: RequestContext;
  readonly #options: CollectOptions;
  readonly #segments: SegmentTracker;
  readonly #closing = new AbortController();
  readonly #signal: AbortSignal;
  readonly #nodes = new Set<string>();
  #inFlight = 0;
  #inFlightBlocks = 0;
  /** Index of the segment that is sent next. */
  #next = 0;
  #isSending = false;
  #failure: { readonly error: unknown } | undefined;
  #changed = Promise.withResolvers<void>();
  readonly chunks = this.#send();

  constructor(ranges: readonly SegmentRange[], query: LogQuery, context: RequestContext, options: CollectOptions) {
    this.#query = query;
    this.#context = context;
    this.#options = options;
    this.#segments = createSegmentTracker(ranges, query.filterHash, context.view.heads, storeFor(context, options));
    this.#signal = AbortSignal.any([context.signal, this.#closing.signal]);
    const onAbort = () => this.close(context.signal.reason);
    context.signal.addEventListener("abort", onAbort, { once: true });
    this.#closing.signal.addEventListener("abort", () => context.signal.removeEventListener("abort", onAbort));
    if (context.signal.aborted) {
      onAbort();
    }
  }

  get found(): SegmentTracker["firstLookup"] {
    return this.#segments.firstLookup;
  }

  get nodes(): ReadonlySet<string> {
    return this.#nodes;
  }

  readonly isStored = (): boolean => this.#segments.isStored;

  lookUp(): Promise<void> {
    return this.#segments.lookUp();
  }

  async fetchRecent(): Promise<void> {
    this.#schedule();
    while (this.#inFlight > 0) {
      await this.#waitForChange();
    }
  }

  close(error: unknown = new Error("The reader of the logs has left")): void {
    this.#failure ??= { error };
    this.#closing.abort(error);
    this.#notify();
  }

  async *#send(): AsyncGenerator<Uint8Array, void, undefined> {
    this.#isSending = true;
    try {
      for (; ; this.#next++) {
        this.#schedule();
        const bytes = await this.#nextChunk();
        if (bytes === undefined) {
          return;
        }
        if (bytes.length > 0) {
          yield bytes;
        }
        this.#segments.markSent(this.#next);
      }
    } finally {
      this.close();
    }
  }

  /** Waits for the bytes of the segment that is sent next; undefined after the last one. */
  async #nextChunk(): Promise<Uint8Array | undefined> {
    for (;;) {
      const state = this.#segments.stateAt(this.#next);
      if (state === undefined) {
        return undefined;
      }
      if (state.kind === "buffered") {
        return state.bytes;
      }
      if (state.kind === "stored") {
        await this.#segments.lookUpAgain(this.#next);
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

  /** Starts fetch ranges while slots and memory allow it. */
  #schedule(): void {
    if (this.#failure !== undefined || this.#signal.aborted) {
      return;
    }
    const start = this.#isSending ? this.#next : this.#segments.firstRecent();
    let isStarted = start >= 0;
    while (isStarted && this.#inFlight < this.#options.maxRanges) {
      isStarted = this.#startRange(start);
    }
  }

  /** Fetches the next missing segments at or after `start`; returns false if there are none or there is no room. */
  #startRange(start: number): boolean {
    const at = this.#segments.nextMissing(start);
    if (at === -1) {
      return false;
    }
    // The segment that is sent next is always fetched: without it, no memory is ever released.
    if (!this.#hasRoom() && !(at === this.#next && this.#inFlight === 0)) {
      return false;
    }
    const { filterHash } = this.#query;
    const { limits, rangeBlocks } = this.#options;
    const range = this.#segments.claimRange(at, {
      memoryBlocks: limits.memoryBlocks(filterHash),
      rangeBlocks: rangeBlocks(filterHash),
    });
    if (range === undefined) {
      return false;
    }
    this.#fetchRange(range)
      .catch((error: unknown) => this.close(error))
      .finally(() => {
        this.#schedule();
        this.#notify();
      });
    return true;
  }

  #hasRoom(): boolean {
    const expectedBytes = this.#inFlightBlocks * this.#options.limits.bytesPerBlock(this.#query.filterHash);
    const maxBytes = this.#isSending ? ADMIT_BELOW_BYTES : RECENT_FIRST_BYTES;
    return this.#segments.bufferedBytes + expectedBytes < maxBytes;
  }

  async #fetchRange(range: ClaimedRange): Promise<void> {
    const blocks = blocksOf(range);
    let receivedBytes = 0;
    const countBytes = (bytes: number) => {
      receivedBytes += bytes;
      this.#segments.countBuffered(bytes);
      if (this.#segments.bufferedBytes <= MAX_BUFFERED_BYTES || range.from === range.to) {
        return;
      }
      this.#options.limits.recordOverflow(this.#query.filterHash, blocks, receivedBytes);
      throw new NoRoom("No room for a fetch range");
    };
    this.#inFlight++;
    this.#inFlightBlocks += blocks;
    try {
      const fetched = await this.#request(range, countBytes);
      for (const node of fetched.nodes) {
        this.#nodes.add(node);
      }
      range.complete(fetched);
    } catch (error) {
      if (!(error instanceof NoRoom)) {
        throw error;
      }
      range.discard();
      this.#segments.evictBefore(this.#next);
    } finally {
      this.#inFlight--;
      this.#inFlightBlocks -= blocks;
      this.#segments.countBuffered(-receivedBytes);
    }
  }

  async #request({ from, to, final }: ClaimedRange, countBytes: FetchContext["countBytes"]): Promise<FetchedLogs> {
    const { filter, filterHash } = this.#query;
    const ending = new AbortController();
    const waiting = AbortSignal.any([this.#signal, ending.signal]);
    const owner: SlotOwner = { clientId: this.#context.clientId, group: this.#segments, signal: waiting };
    // If another range fails, requests that a node is answering continue and are cached. Waiting requests end.
    const signal = AbortSignal.any([this.#context.signal, ending.signal]);
    try {
      return await this.#options.fetchLogs(
        { from, to, filter, final },
        { ...this.#context, signal, owner, filterHash, countBytes, retries: new FetchRetries() },
      );
    } finally {
      // Other requests of this range have no reader any more.
      ending.abort(ENDED);
    }
  }
}

/** Collects the logs of one query's segments, in ascending order. */
export const collectLogs = (
  ranges: readonly SegmentRange[],
  query: LogQuery,
  context: RequestContext,
  options: CollectOptions,
): LogCollector => new OrderedLogCollector(ranges, query, context, options);
