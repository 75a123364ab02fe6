import type { Context } from "../core/context.ts";
import type { LogFilter } from "../ethereum/logFilter.ts";
import { overBudget } from "../jsonrpc/rpcError.ts";
import type { SlotOwner } from "../limits/fairGate.ts";
import type { MemoryBudget, MemoryUse } from "../limits/memoryBudget.ts";
import type { FetchedLogs, FetchLogs } from "./fetchLogs.ts";
import { FetchRetries } from "./fetchRetries.ts";
import type { LogsOptions } from "./logsOptions.ts";
import type { NodeLimits } from "./nodeLimits.ts";
import { blocksOf, MAX_RANGE_BLOCKS, RefusedRange } from "./plan.ts";
import { FetchContext } from "./requestLogs.ts";
import type { ClaimedRange, SegmentTable } from "./segmentTable.ts";

/** Limit of one query's fetched and cached logs that are not sent yet. */
const MAX_BUFFERED_BYTES = 32 * 1024 * 1024;
/** Above this size no further range is requested, so that responses in flight still find room. */
const ADMIT_BELOW_BYTES = 20 * 1024 * 1024;
/** Recent segments are fetched before older ones, up to this size. */
const RECENT_FIRST_BYTES = 10 * 1024 * 1024;

/** Ranges with larger responses are made smaller, so that many fit into a query's memory. */
const TARGET_RANGE_BYTES = 2 * 1024 * 1024;

class NoRoom extends Error {}
/** Created once: an abort without a reason creates an error with a stack each time. */
const ENDED = new Error("The fetch range has ended");

/** A claimed range, and whether it is larger than any that a node has accepted. */
type PlannedRange = ClaimedRange & { readonly isLarger: boolean };

export interface HashedFilter {
  readonly filter: LogFilter;
  readonly filterHash: string;
}

/** What all queries of one chain share. */
export interface QueryOptions extends Pick<LogsOptions, "store" | "memory"> {
  readonly fetchLogs: FetchLogs;
  readonly limits: NodeLimits;
  /** Limit of one query's fetch ranges in flight. */
  readonly maxRanges: number;
}

/** The fetch ranges of one query. They end with the query: it has failed, or its client has left. */
export class RangeFetches {
  readonly #table: SegmentTable;
  readonly #query: HashedFilter;
  readonly #context: Context;
  readonly #options: QueryOptions;
  readonly #memory: LogMemory;
  readonly #closing = new AbortController();
  /** Ends waiting requests. */
  readonly #waiting: AbortSignal;
  readonly #nodes = new Set<string>();
  /** Falls if a node refuses the logs of a range, and if they do not fit into memory. */
  #maxBlocks = MAX_RANGE_BLOCKS;
  /** The largest range that was fetched since `#maxBlocks` fell. */
  #fetchedBlocks = 0;
  #bytesPerBlock = 0;
  #inFlight = 0;
  #inFlightBlocks = 0;
  #isSending = false;
  #failure: { readonly error: unknown } | undefined;
  #ended = Promise.withResolvers<void>();

  constructor(table: SegmentTable, query: HashedFilter, context: Context, options: QueryOptions) {
    this.#table = table;
    this.#query = query;
    this.#context = context;
    this.#options = options;
    this.#memory = new LogMemory(options.memory, context.caller.clientId);
    this.#waiting = AbortSignal.any([context.signal, this.#closing.signal]);
    const onAbort = () => this.close(context.signal.reason);
    context.signal.addEventListener("abort", onAbort, { once: true });
    this.#closing.signal.addEventListener("abort", () => context.signal.removeEventListener("abort", onAbort));
    if (context.signal.aborted) {
      onAbort();
    }
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** The nodes whose logs were used. */
  get nodes(): ReadonlySet<string> {
    return this.#nodes;
  }

  /** Starts fetch ranges while slots and memory allow it. Until a node has accepted the size, that is one. */
  start(): void {
    while (this.#failure === undefined && !this.#waiting.aborted) {
      const range = this.#inFlight < (this.#isTried ? this.#options.maxRanges : 1) ? this.#claim() : undefined;
      if (range === undefined) {
        return;
      }
      this.#fetch(range).then(
        () => this.#onEnd(),
        (error: unknown) => {
          this.close(error);
          this.#onEnd();
        },
      );
    }
  }

  /** Until this call, only recent segments are fetched. */
  beginSending(): void {
    this.#isSending = true;
  }

  /** Counts the bytes of the table. Throws RpcError if there is no room for more. */
  countMemory(): void {
    this.#memory.set(this.#table.bufferedBytes);
  }

  /** Waits for the end of a fetch range. Rejects if the query has failed. */
  async nextEnd(): Promise<void> {
    if (this.#failure === undefined) {
      await this.#ended.promise;
    }
    if (this.#failure !== undefined) {
      throw this.#failure.error;
    }
  }

  /** Ends all requests in flight. */
  close(error: unknown): void {
    this.#failure ??= { error };
    this.#closing.abort(error);
    this.#memory.end();
    this.#notify();
  }

  #onEnd(): void {
    this.start();
    this.#notify();
  }

  #notify(): void {
    this.#ended.resolve();
    this.#ended = Promise.withResolvers();
  }

  /** Claims the next missing segments, if there are any and there is room. Before the first byte is sent, these are the recent ones. */
  #claim(): PlannedRange | undefined {
    const { next } = this.#table;
    const start = this.#isSending ? next : this.#table.firstRecent();
    const at = start < 0 ? -1 : this.#table.nextMissing(start);
    // The segment that is sent next is always fetched: without it, no memory is ever released.
    const isNeeded = at === next && this.#inFlight === 0;
    if (at === -1 || !(isNeeded || this.#hasRoom(this.#isSending ? ADMIT_BELOW_BYTES : RECENT_FIRST_BYTES))) {
      return undefined;
    }
    // The range with the recent blocks is filled with older ones, so that together they need the fewest requests.
    const { blocks, isLarger } = this.#options.limits.best.plan(this.#ownBlocks);
    const range = this.#table.claimRange(at, blocks, this.#isSending ? "ascending" : "descending");
    return range && { ...range, isLarger };
  }

  /** Whether a node has accepted a range of the size that is planned next. */
  get #isTried(): boolean {
    const { limits } = this.#options;
    const isFetched = this.#fetchedBlocks >= Math.min(this.#ownBlocks, limits.best.blocks);
    return isFetched || (this.#maxBlocks === MAX_RANGE_BLOCKS && limits.isTried);
  }

  /** The blocks of a range that this query's logs allow. */
  get #ownBlocks(): number {
    return Math.max(1, Math.min(this.#maxBlocks, Math.floor(TARGET_RANGE_BYTES / this.#bytesPerBlock)));
  }

  /** A range was refused, or did not fit: the next ones have half of its blocks. */
  #halve(blocks: number): void {
    this.#maxBlocks = Math.max(1, Math.min(this.#maxBlocks, Math.floor(blocks / 2)));
    this.#fetchedBlocks = 0;
  }

  /** The average rises at once and falls slowly: a range that is too large costs more than one that is too small. */
  #countDensity(blocks: number, bytes: number): void {
    const previous = this.#bytesPerBlock;
    const density = bytes / blocks;
    this.#bytesPerBlock = Math.max(density, (previous * 3 + density) / 4);
  }

  #hasRoom(maxBytes: number): boolean {
    const expectedBytes = this.#inFlightBlocks * this.#bytesPerBlock;
    return this.#table.bufferedBytes + expectedBytes < maxBytes;
  }

  async #fetch(range: PlannedRange): Promise<void> {
    this.#memory.admit();
    const blocks = blocksOf(range);
    let receivedBytes = 0;
    const countBytes = (bytes: number) => {
      receivedBytes += bytes;
      this.#table.countBuffered(bytes);
      this.countMemory();
      if (this.#table.bufferedBytes <= MAX_BUFFERED_BYTES || range.from === range.to) {
        return;
      }
      throw new NoRoom("No room for a fetch range");
    };
    this.#inFlight++;
    this.#inFlightBlocks += blocks;
    try {
      const fetched = await this.#request(range, countBytes);
      for (const node of fetched.nodes) {
        this.#nodes.add(node);
      }
      this.#fetchedBlocks = Math.max(this.#fetchedBlocks, blocks);
      this.#countDensity(blocks, receivedBytes);
      range.complete(fetched);
    } catch (error) {
      if (!(error instanceof NoRoom || error instanceof RefusedRange)) {
        throw error;
      }
      range.discard();
      if (error instanceof NoRoom) {
        this.#countDensity(blocks, receivedBytes);
        this.#table.evictAfterNext();
      }
      if (error instanceof NoRoom || error.refusal === "size") {
        this.#halve(blocks);
      }
    } finally {
      this.#inFlight--;
      this.#inFlightBlocks -= blocks;
      this.#table.countBuffered(-receivedBytes);
    }
  }

  async #request(
    { from, to, final, isLarger }: PlannedRange,
    countBytes: FetchContext["countBytes"],
  ): Promise<FetchedLogs> {
    const { filter } = this.#query;
    const context = this.#context;
    const ending = new AbortController();
    const waiting = AbortSignal.any([this.#waiting, ending.signal]);
    const owner: SlotOwner = { clientId: context.caller.clientId, group: this.#table, signal: waiting };
    // If another range fails, requests that a node is answering continue and are cached. Waiting requests end.
    const signal = AbortSignal.any([context.signal, ending.signal]);
    try {
      return await this.#options.fetchLogs(
        { from, to, filter, final, isLarger },
        // `countBytes` counts the logs. They are sent piece by piece, so that the request does not hold them to its end.
        new FetchContext(context.with({ ending: { signal } }), {
          owner,
          countBytes,
          isPlanned: true,
          retries: new FetchRetries(),
        }),
      );
    } finally {
      // Other requests of this range have no reader any more.
      ending.abort(ENDED);
    }
  }
}

/** The bytes that one log query holds: logs that are received and not sent yet. */
class LogMemory {
  readonly #budget: MemoryBudget | undefined;
  readonly #clientId: string;
  readonly #use: MemoryUse | undefined;
  #isAdmitted = false;
  #isEnded = false;

  constructor(budget: MemoryBudget | undefined, clientId: string) {
    this.#budget = budget;
    this.#clientId = clientId;
    this.#use = budget?.open("logs", clientId);
  }

  /** Throws RpcError if the query has requested nothing from a node yet, and there is no room for its logs. */
  admit(): void {
    const error = this.#isAdmitted ? undefined : this.#budget?.refuse("logs", this.#clientId);
    if (error !== undefined) {
      throw error;
    }
    this.#isAdmitted = true;
  }

  /** Sets the number of bytes. Throws RpcError if there is no room for more. */
  set(bytes: number): void {
    if (!this.#isEnded && this.#use?.trySet(bytes) === false) {
      throw overBudget();
    }
  }

  end(): void {
    this.#isEnded = true;
    this.#use?.end();
  }
}
