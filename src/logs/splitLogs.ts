import type { BlockRange } from "../core/logRange.ts";
import type { Node } from "../core/node.ts";
import type { CacheStatus, RequestContext, RpcResponse } from "../core/rpcSource.ts";
import type { Hash } from "../ethereum/hex.ts";
import { canonicalLogFilter, type LogFilter } from "../ethereum/logFilter.ts";
import { CODES, RpcError, upstreamTimeout } from "../jsonrpc/rpcError.ts";
import type { FairScheduler } from "../limits/fairScheduler.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { createCheckLogs } from "./checkLogs.ts";
import { createFetchLogs } from "./fetchLogs.ts";
import { createFillTimestamps } from "./fillTimestamps.ts";
import { collectLogs, type LogCollector } from "./logCollector.ts";
import { createLogsOfBlock } from "./logsOfBlock.ts";
import { formatList, streamList } from "./mergeLogs.ts";
import { createNodeLimits } from "./nodeLimits.ts";
import { cutPieces, MAX_SPAN_BLOCKS, spanBlocks } from "./plan.ts";
import { hashFilter, type SegmentStore } from "./segments.ts";
import { shareFetches } from "./shareFetches.ts";
import type { LogVerification } from "./verifyLogs.ts";

export interface SplitLogsOptions {
  /** The chain's name, for metrics. */
  readonly chain: string;
  readonly nodes: readonly Node[];
  readonly store: SegmentStore;
  /** Shared by all chains of the process. */
  readonly slots: FairScheduler;
  readonly spansPerNode?: (node: Node) => number;
  /** Timeout of one fetch range on one node. */
  readonly spanTimeoutMs?: number;
  readonly retryDelayMs?: number;
  /** Limit of a response's size; `undefined` means no limit. */
  readonly maxResponseBytes?: number | undefined;
  /** If it is `undefined`, logs are not verified against filters, blooms and receipts. */
  readonly verification?: LogVerification;
  readonly telemetry: Telemetry;
}

/** Logs of sealed blocks, over any range; its answers' lists are complete, ordered, each log once. */
export interface SplitLogs {
  request(
    filter: LogFilter,
    blocks: BlockRange | { readonly blockHash: Hash },
    context: RequestContext,
  ): Promise<RpcResponse>;
}

/** An answer as large as this is sent while the rest of it is fetched. */
const STREAM_ABOVE_BYTES = 8 * 1024 * 1024;
/** An answer up to this is one buffer. */
const WHOLE_BYTES = 256 * 1024;
const BRACKETS_BYTES = 2;
const SPANS_PER_NODE = 8;

const tooLarge = (maxBytes: number): RpcError =>
  new RpcError(CODES.RESPONSE_TOO_LARGE, `The logs are larger than a response may be: ${maxBytes} bytes`);

/** Behind the first byte only a broken connection says that something is wrong. */
async function* limited(
  first: readonly Uint8Array[],
  rest: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let total = BRACKETS_BYTES;
  for (const chunk of first) {
    total += chunk.length;
    yield chunk;
  }
  for await (const chunk of rest) {
    total += chunk.length;
    if (total > maxBytes) throw tooLarge(maxBytes);
    yield chunk;
  }
}

const statusOf = (
  { found, isStored }: LogCollector,
  pieces: number,
  isDone: boolean,
  bypassCache: boolean,
): CacheStatus => {
  if (found.pieces === pieces) return { hit: found.from.has("redis") ? "redis" : "memory" };
  const detail = `${found.pieces}/${pieces} segments`;
  const fwd = bypassCache ? "request" : found.pieces > 0 ? "partial" : "miss";
  return { fwd, detail, ...(isDone && { stored: isStored() }) };
};

/** `eth_getLogs` over any range: cut into segments, found or fetched in spans, and put together as bytes. */
export const splitLogs = (options: SplitLogsOptions): SplitLogs => {
  const { chain, nodes, store, slots, telemetry, spanTimeoutMs = 30_000 } = options;
  const spansPerNode = options.spansPerNode ?? (() => SPANS_PER_NODE);
  const maxBytes = options.maxResponseBytes ?? Number.POSITIVE_INFINITY;
  const limits = createNodeLimits();
  const fetchAlone = createFetchLogs({
    chain,
    nodes,
    limits,
    slots,
    spansPerNode,
    checkLogs: createCheckLogs(),
    fillTimestamps: createFillTimestamps(),
    verification: options.verification,
    spanTimeoutMs,
    ...(options.retryDelayMs !== undefined && { retryDelayMs: options.retryDelayMs }),
    telemetry,
  });
  const fetchLogs = shareFetches(fetchAlone);
  const logsOfBlock = createLogsOfBlock({ nodes, store, fetchLogs });
  const { metrics } = telemetry;

  /** Blocks of one span: what suits the node that allows most. */
  const blocksOfSpan = (filterHash: string): number => {
    const available = nodes.filter((node) => node.available);
    return available.length === 0
      ? MAX_SPAN_BLOCKS
      : spanBlocks(Math.max(...available.map((node) => limits.blocks(node, filterHash))));
  };

  const collect = async (collection: LogCollector, pieces: number, context: RequestContext): Promise<RpcResponse> => {
    if (!context.bypassCache) await collection.lookUp();
    const found = collection.found.pieces;
    metrics.logSegments.inc({ chain, source: "cache" }, found);
    metrics.logSegments.inc({ chain, source: "node" }, pieces - found);
    await collection.fetchRecent();

    const first: Uint8Array[] = [];
    let bytes = BRACKETS_BYTES;
    let isDone = false;
    while (bytes < STREAM_ABOVE_BYTES && !isDone) {
      const chunk = await collection.chunks.next();
      if (chunk.value) {
        first.push(chunk.value);
        bytes += chunk.value.length;
        if (bytes > maxBytes) throw tooLarge(maxBytes);
      }
      isDone = chunk.done === true;
    }
    const [node] = collection.nodes;
    return {
      body:
        isDone && bytes <= WHOLE_BYTES
          ? formatList(first)
          : streamList(isDone ? first : limited(first, collection.chunks, maxBytes)),
      status: statusOf(collection, pieces, isDone, context.bypassCache),
      ...(node !== undefined && collection.nodes.size === 1 && { node }),
    };
  };

  const overRange = async (filter: LogFilter, range: BlockRange, context: RequestContext): Promise<RpcResponse> => {
    metrics.logRangeBlocks.observe({ chain }, Number(range.to - range.from) + 1);
    const pieces = cutPieces(range, context.view.heads.finalized?.number);
    const query = { filter, filterHash: hashFilter(canonicalLogFilter(filter)) };
    const collection = collectLogs(pieces, query, context, {
      store,
      fetchLogs,
      limits,
      spanBlocks: blocksOfSpan,
      // No more than can be answered at once: the later a span is cut, the more is known of what nodes take.
      maxSpans: nodes.reduce((sum, node) => sum + spansPerNode(node), 0),
    });
    const late = () => collection.close(upstreamTimeout("The logs took too long; what was read of them is kept"));
    const timer = setTimeout(late, Math.max(0, context.deadlineMs - performance.now()));
    try {
      return await collect(collection, pieces.length, context);
    } catch (error) {
      collection.close(error);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  };

  return {
    request: (filter, blocks, context) =>
      "blockHash" in blocks ? logsOfBlock(blocks.blockHash, filter, context) : overRange(filter, blocks, context),
  };
};
