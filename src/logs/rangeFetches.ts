import type { RequestContext } from "../core/rpcSource.ts";
import type { LogFilter } from "../ethereum/logFilter.ts";
import type { SlotOwner } from "../limits/fairScheduler.ts";
import type { FetchedLogs, FetchLogs } from "./fetchLogs.ts";
import { FetchRetries } from "./fetchRetries.ts";
import type { LogMemory } from "./logMemory.ts";
import type { NodeLimits } from "./nodeLimits.ts";
import { blocksOf, RefusedRange } from "./plan.ts";
import type { FetchContext } from "./requestLogs.ts";
import type { ClaimedRange, SegmentTable } from "./segmentTable.ts";

/** Limit of one query's fetched and cached logs that are not sent yet. */
const MAX_BUFFERED_BYTES = 32 * 1024 * 1024;
/** Above this size no further range is requested, so that responses in flight still find room. */
const ADMIT_BELOW_BYTES = 20 * 1024 * 1024;
/** Recent segments are fetched before older ones, up to this size. */
const RECENT_FIRST_BYTES = 10 * 1024 * 1024;

class NoRoom extends Error {}
/** Created once: an abort without a reason creates an error with a stack each time. */
const ENDED = new Error("The fetch range has ended");

export interface HashedFilter {
  readonly filter: LogFilter;
  readonly filterHash: string;
}

export interface RangeFetchOptions {
  readonly fetchLogs: FetchLogs;
  readonly limits: NodeLimits;
  /** Limit of one query's fetch ranges in flight. */
  readonly maxRanges: number;
}

/** The parts of segments that a query needs next. */
export interface Demand {
  /** Index of the first part to fetch; -1 if no part is missing. */
  readonly start: number;
  /** Index of the part that is sent next. */
  readonly next: number;
  /** False while only recent segments are fetched, before the first byte. */
  readonly isSending: boolean;
}

/** The part of a query that sends the segments in order. */
export interface SegmentReader {
  demand(): Demand;
  /** Called at the end of each fetch range. */
  onEnd(failure?: { readonly error: unknown }): void;
  readonly context: RequestContext;
  readonly memory: LogMemory;
  /** Ends waiting requests: the query has failed, or its client has left. */
  readonly signal: AbortSignal;
}

/** The fetch ranges in flight of one query. */
export class RangeFetches {
  readonly #segments: SegmentTable;
  readonly #query: HashedFilter;
  readonly #reader: SegmentReader;
  readonly #options: RangeFetchOptions;
  readonly #nodes = new Set<string>();
  #inFlight = 0;
  #inFlightBlocks = 0;

  constructor(segments: SegmentTable, query: HashedFilter, reader: SegmentReader, options: RangeFetchOptions) {
    this.#segments = segments;
    this.#query = query;
    this.#reader = reader;
    this.#options = options;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** The nodes whose logs were used. */
  get nodes(): ReadonlySet<string> {
    return this.#nodes;
  }

  /** Starts fetch ranges while slots and memory allow it. Until a node has accepted or refused the size, that is one. */
  start(): void {
    while (this.#inFlight < (this.#options.limits.isTried(this.#rangeBlocks) ? this.#options.maxRanges : 1)) {
      const range = this.#claim(this.#reader.demand());
      if (range === undefined) {
        return;
      }
      this.#fetch(range).then(
        () => this.#reader.onEnd(),
        (error: unknown) => this.#reader.onEnd({ error }),
      );
    }
  }

  /** Claims the next missing segments at or after `start`, if there are any and there is room. */
  #claim({ start, next, isSending }: Demand): ClaimedRange | undefined {
    const at = start < 0 ? -1 : this.#segments.nextMissing(start);
    // The segment that is sent next is always fetched: without it, no memory is ever released.
    const isNeeded = at === next && this.#inFlight === 0;
    if (at === -1 || !(isNeeded || this.#hasRoom(isSending ? ADMIT_BELOW_BYTES : RECENT_FIRST_BYTES))) {
      return undefined;
    }
    // The range with the recent blocks is filled with older ones, so that together they need the fewest requests.
    return this.#segments.claimRange(at, this.#rangeBlocks, isSending ? "ascending" : "descending");
  }

  get #rangeBlocks(): number {
    const { filterHash } = this.#query;
    const { limits } = this.#options;
    return Math.min(limits.memoryBlocks(filterHash), limits.rangeBlocks(filterHash));
  }

  #hasRoom(maxBytes: number): boolean {
    const expectedBytes = this.#inFlightBlocks * this.#options.limits.bytesPerBlock(this.#query.filterHash);
    return this.#segments.bufferedBytes + expectedBytes < maxBytes;
  }

  async #fetch(range: ClaimedRange): Promise<void> {
    const { memory } = this.#reader;
    memory.admit();
    const blocks = blocksOf(range);
    let receivedBytes = 0;
    const countBytes = (bytes: number) => {
      receivedBytes += bytes;
      this.#segments.countBuffered(bytes);
      memory.set(this.#segments.bufferedBytes);
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
      if (!(error instanceof NoRoom || error instanceof RefusedRange)) {
        throw error;
      }
      range.discard();
      if (error instanceof NoRoom) {
        this.#segments.evictAfterNext();
      }
    } finally {
      this.#inFlight--;
      this.#inFlightBlocks -= blocks;
      this.#segments.countBuffered(-receivedBytes);
    }
  }

  async #request({ from, to, final }: ClaimedRange, countBytes: FetchContext["countBytes"]): Promise<FetchedLogs> {
    const { filter, filterHash } = this.#query;
    const { context, signal: querySignal } = this.#reader;
    const ending = new AbortController();
    const waiting = AbortSignal.any([querySignal, ending.signal]);
    const owner: SlotOwner = { clientId: context.clientId, group: this.#segments, signal: waiting };
    // If another range fails, requests that a node is answering continue and are cached. Waiting requests end.
    const signal = AbortSignal.any([context.signal, ending.signal]);
    try {
      return await this.#options.fetchLogs(
        { from, to, filter, final },
        // `countBytes` counts the logs. They are sent piece by piece, so that the request does not hold them to its end.
        {
          ...context,
          memory: undefined,
          signal,
          owner,
          filterHash,
          countBytes,
          isPlanned: true,
          retries: new FetchRetries(),
        },
      );
    } finally {
      // Other requests of this range have no reader any more.
      ending.abort(ENDED);
    }
  }
}
