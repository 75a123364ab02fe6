import type { BlockRange } from "../core/logRange.ts";
import type { RequestContext, RpcResponse } from "../core/rpcSource.ts";
import type { Hash } from "../ethereum/hex.ts";
import { canonicalLogFilter, type LogFilter } from "../ethereum/logFilter.ts";
import { upstreamTimeout } from "../jsonrpc/rpcError.ts";
import { hashFilter } from "./cachedSegments.ts";
import { type FetchLogs, RangeFetcher } from "./fetchLogs.ts";
import { collectLogs, type LogCollector } from "./logCollector.ts";
import { createLogResponse } from "./logResponse.ts";
import { createLogsOfBlock, type LogsOfBlock } from "./logsOfBlock.ts";
import type { LogsOptions } from "./logsOptions.ts";
import { NodeLimits } from "./nodeLimits.ts";
import { splitIntoSegments } from "./plan.ts";
import { shareFetches } from "./shareFetches.ts";

/** Returns the logs of sealed blocks: complete, ordered, without duplicates, over any range. */
export interface SplitLogs {
  request(
    filter: LogFilter,
    blocks: BlockRange | { readonly blockHash: Hash },
    context: RequestContext,
  ): Promise<RpcResponse>;
}

class SegmentedLogs implements SplitLogs {
  readonly #options: LogsOptions;
  readonly #limits: NodeLimits;
  readonly #fetchLogs: FetchLogs;
  readonly #logsOfBlock: LogsOfBlock;

  constructor(options: LogsOptions) {
    const { nodes, store } = options;
    this.#options = options;
    this.#limits = new NodeLimits(options);
    this.#fetchLogs = shareFetches(new RangeFetcher(options, this.#limits).fetch);
    this.#logsOfBlock = createLogsOfBlock({ nodes, store, fetchLogs: this.#fetchLogs });
  }

  request(
    filter: LogFilter,
    blocks: BlockRange | { readonly blockHash: Hash },
    context: RequestContext,
  ): Promise<RpcResponse> {
    return "blockHash" in blocks
      ? this.#logsOfBlock(blocks.blockHash, filter, context)
      : this.#requestRange(filter, blocks, context);
  }

  async #requestRange(filter: LogFilter, range: BlockRange, context: RequestContext): Promise<RpcResponse> {
    const { chain, nodes, store, memory, telemetry, rangesPerNode } = this.#options;
    const blocks = Number(range.to - range.from) + 1;
    telemetry.metrics.logRangeBlocks.observe({ chain }, blocks);
    const ranges = splitIntoSegments(range, context.view.heads.finalized?.number);
    const query = { filter, filterHash: hashFilter(canonicalLogFilter(filter)) };
    const collector = collectLogs(ranges, query, context, {
      store,
      memory,
      fetchLogs: this.#fetchLogs,
      limits: this.#limits,
      // Not more than the nodes serve at once: a range that is cut later is cut by better known limits.
      maxRanges: nodes.reduce((sum, node) => sum + rangesPerNode(node), 0),
    });
    const onLate = () => collector.close(upstreamTimeout("The logs took too long; the fetched part is cached"));
    const timer = setTimeout(onLate, Math.max(0, context.deadlineMs - performance.now()));
    try {
      await this.#limits.load(blocks);
      return await this.#respond(collector, ranges.length, context);
    } catch (error) {
      collector.close(error);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  async #respond(collector: LogCollector, segments: number, { bypassCache }: RequestContext): Promise<RpcResponse> {
    const { chain, telemetry, maxResponseBytes: maxBytes = Number.POSITIVE_INFINITY } = this.#options;
    if (!bypassCache) {
      await collector.lookUp();
    }
    const cached = collector.found.segments;
    telemetry.metrics.logSegments.inc({ chain, source: "cache" }, cached);
    telemetry.metrics.logSegments.inc({ chain, source: "node" }, segments - cached);
    await collector.fetchRecent();
    return createLogResponse(collector, { segments, maxBytes, bypassCache });
  }
}

/** Creates `eth_getLogs` over any range: it splits a query into segments, looks them up, fetches the rest and joins the bytes. */
export const splitLogs = (options: LogsOptions): SplitLogs => new SegmentedLogs(options);
