import type { Context } from "../core/context.ts";
import type { BlockId } from "../core/heads.ts";
import type { BlockRange } from "../core/logRange.ts";
import type { CacheStatus, RpcResponse } from "../core/rpcSource.ts";
import type { Hash } from "../ethereum/hex.ts";
import { canonicalLogFilter, type LogFilter } from "../ethereum/logFilter.ts";
import { CODES, RpcError, upstreamTimeout } from "../jsonrpc/rpcError.ts";
import { CachedSegments, hashFilter } from "./cachedSegments.ts";
import { RangeFetcher } from "./fetchLogs.ts";
import { LogsOfBlock } from "./logsOfBlock.ts";
import type { LogsOptions } from "./logsOptions.ts";
import { formatList, streamList } from "./mergeLogs.ts";
import { NodeLimits } from "./nodeLimits.ts";
import { type SegmentRange, splitIntoSegments } from "./plan.ts";
import { type HashedFilter, type QueryOptions, RangeFetches } from "./rangeFetches.ts";
import { SegmentTable } from "./segmentTable.ts";
import { shareFetches } from "./shareFetches.ts";

/** A response of this size is sent while the remainder is fetched. */
const STREAM_ABOVE_BYTES = 8 * 1024 * 1024;
/** A response up to this size is one buffer. */
const WHOLE_BYTES = 256 * 1024;
const BRACKETS_BYTES = 2;

/**
 * Returns the logs of sealed blocks: complete, ordered, without duplicates, over any range.
 * It splits a query into segments, looks them up, fetches the others and joins the bytes.
 */
export class SplitLogs {
  readonly #options: LogsOptions;
  readonly #limits: NodeLimits;
  readonly #query: QueryOptions;
  readonly #logsOfBlock: LogsOfBlock;

  constructor(options: LogsOptions) {
    const { nodes, store, memory } = options;
    this.#options = options;
    this.#limits = new NodeLimits(nodes);
    const fetcher = new RangeFetcher(options, this.#limits);
    const fetchLogs = shareFetches(fetcher.fetch);
    // Not more than the nodes serve at once: a range that is cut later is cut by better known limits.
    const maxRanges = nodes.reduce((sum, { maxLogRanges }) => sum + maxLogRanges, 0);
    this.#query = { store, memory, fetchLogs, limits: this.#limits, maxRanges };
    this.#logsOfBlock = new LogsOfBlock(options, fetchLogs, fetcher.fetchFromReceipts);
  }

  request(
    filter: LogFilter,
    blocks: BlockRange | { readonly blockHash: Hash },
    context: Context,
  ): Promise<RpcResponse> {
    return "blockHash" in blocks
      ? this.#logsOfBlock.request(blocks.blockHash, filter, context)
      : this.#requestRange(filter, blocks, context);
  }

  /** Caches the logs of a recent block, in the form of `joinLogs`. */
  keep(filter: LogFilter, block: BlockId, bytes: Uint8Array): void {
    this.#logsOfBlock.keep(filter, block, bytes);
  }

  /** Returns logs that were kept, as long as the cache has them. */
  kept(filter: LogFilter, hash: Hash): Promise<Uint8Array | undefined> {
    return this.#logsOfBlock.kept(filter, hash);
  }

  async #requestRange(filter: LogFilter, range: BlockRange, context: Context): Promise<RpcResponse> {
    const ranges = splitIntoSegments(range, context.view.heads.finalized?.number);
    const query = { filter, filterHash: hashFilter(canonicalLogFilter(filter)) };
    const collector = new LogCollector(ranges, query, context, this.#query);
    const onLate = () => collector.close(upstreamTimeout("The logs took too long; the fetched part is cached"));
    const timer = setTimeout(onLate, Math.max(0, context.deadlineMs - performance.now()));
    try {
      return await this.#respond(collector, ranges.length, context);
    } catch (error) {
      collector.close(error);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Responds with one buffer, or with a stream if it is large. Throws if the response exceeds its limit. */
  async #respond(collector: LogCollector, segments: number, { bypassCache }: Context): Promise<RpcResponse> {
    const { maxResponseBytes: maxBytes = Number.POSITIVE_INFINITY } = this.#options;
    if (!bypassCache) {
      await collector.table.lookUp();
    }
    await collector.fetchRecent();
    const { chunks, bytes, isComplete } = await readStart(collector.chunks, maxBytes);
    const isWhole = isComplete && bytes <= WHOLE_BYTES;
    const { nodes } = collector.fetches;
    const [node] = nodes;
    return {
      body: isWhole
        ? formatList(chunks)
        : streamList(isComplete ? chunks : limited(chunks, collector.chunks, maxBytes)),
      status: statusOf(collector.table, isComplete, segments, bypassCache),
      ...(node !== undefined && nodes.size === 1 && { node }),
    };
  }
}

/** The segments of one query: looked up, fetched if they are missing, sent in ascending order. */
class LogCollector {
  readonly table: SegmentTable;
  readonly fetches: RangeFetches;
  /** The segments' bytes in order. Memory of a chunk is released when the next chunk is requested. */
  readonly chunks = this.#send();

  constructor(ranges: readonly SegmentRange[], query: HashedFilter, context: Context, options: QueryOptions) {
    this.table = new SegmentTable(ranges, new CachedSegments(query.filterHash, context, options.store));
    this.fetches = new RangeFetches(this.table, query, context, options);
  }

  /** Resolves when the recent segments are fetched and match the view. */
  async fetchRecent(): Promise<void> {
    this.fetches.start();
    while (this.fetches.inFlight > 0) {
      await this.fetches.nextEnd();
    }
  }

  /** Ends all requests in flight. A reader that waits for a chunk gets the error. */
  close(error: unknown = new Error("The reader of the logs has left")): void {
    this.fetches.close(error);
  }

  async *#send(): AsyncGenerator<Uint8Array, void, undefined> {
    this.fetches.beginSending();
    try {
      for (;;) {
        this.fetches.start();
        const bytes = await this.#nextChunk();
        if (bytes === undefined) {
          return;
        }
        if (bytes.length > 0) {
          yield bytes;
        }
        this.table.markSent();
        this.fetches.countMemory();
      }
    } finally {
      this.close();
    }
  }

  /** Waits for the bytes of the segment that is sent next; undefined after the last one. */
  async #nextChunk(): Promise<Uint8Array | undefined> {
    for (;;) {
      const state = this.table.stateAt(this.table.next);
      if (state === undefined) {
        return undefined;
      }
      if (state.kind === "buffered") {
        return state.bytes;
      }
      if (state.kind === "stored") {
        await this.table.lookUpNext();
        this.fetches.start();
      } else {
        await this.fetches.nextEnd();
      }
    }
  }
}

interface Start {
  readonly chunks: readonly Uint8Array[];
  readonly bytes: number;
  /** No chunk follows. */
  readonly isComplete: boolean;
}

/** Reads chunks until the response is complete, or large enough to be streamed. */
const readStart = async (source: LogCollector["chunks"], maxBytes: number): Promise<Start> => {
  const chunks: Uint8Array[] = [];
  let bytes = BRACKETS_BYTES;
  while (bytes < STREAM_ABOVE_BYTES) {
    const { done, value } = await source.next();
    if (done === true) {
      return { chunks, bytes, isComplete: true };
    }
    chunks.push(value);
    bytes += value.length;
    if (bytes > maxBytes) {
      throw tooLarge(maxBytes);
    }
  }
  return { chunks, bytes, isComplete: false };
};

/** Limits the size of a stream. After the first byte, only a broken connection can report an error. */
async function* limited(
  first: readonly Uint8Array[],
  remainder: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let total = BRACKETS_BYTES;
  for (const chunk of first) {
    total += chunk.length;
    yield chunk;
  }
  for await (const chunk of remainder) {
    total += chunk.length;
    if (total > maxBytes) {
      throw tooLarge(maxBytes);
    }
    yield chunk;
  }
}

const tooLarge = (maxBytes: number): RpcError =>
  new RpcError(CODES.RESPONSE_TOO_LARGE, `The logs are larger than the limit of a response: ${maxBytes} bytes`);

const statusOf = (
  { firstLookup: found, isStored }: SegmentTable,
  isComplete: boolean,
  segments: number,
  bypassCache: boolean,
): CacheStatus => {
  if (found.segments === segments) {
    const slowest = (["redis", "disk"] as const).find((tier) => found.from.has(tier));
    return { hit: slowest ?? "memory" };
  }
  const detail = `${found.segments}/${segments} segments`;
  const fwd = bypassCache ? "request" : found.segments > 0 ? "partial" : "miss";
  return { fwd, detail, ...(isComplete && { stored: isStored }) };
};
