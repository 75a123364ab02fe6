import type { Clock } from "../core/clock.ts";
import type { BlockRange } from "../core/logRange.ts";
import type { Node } from "../core/node.ts";
import type { RequestContext, RpcResponse } from "../core/rpcSource.ts";
import type { SharedValues } from "../core/sharedValues.ts";
import type { Hash } from "../ethereum/hex.ts";
import { canonicalLogFilter, type LogFilter } from "../ethereum/logFilter.ts";
import { upstreamTimeout } from "../jsonrpc/rpcError.ts";
import type { FairScheduler } from "../limits/fairScheduler.ts";
import type { MemoryBudget } from "../limits/memoryBudget.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { createCheckLogs } from "./checkLogs.ts";
import { createFetchLogs, type FetchLogs } from "./fetchLogs.ts";
import { createFillTimestamps } from "./fillTimestamps.ts";
import { collectLogs, type LogCollector } from "./logCollector.ts";
import { createLogResponse } from "./logResponse.ts";
import { createLogsOfBlock, type LogsOfBlock } from "./logsOfBlock.ts";
import { createNodeLimits, type NodeLimits } from "./nodeLimits.ts";
import { splitIntoSegments } from "./plan.ts";
import { hashFilter, type SegmentStore } from "./segments.ts";
import { SharedLimits } from "./sharedLimits.ts";
import { shareFetches } from "./shareFetches.ts";
import type { LogVerification } from "./verifyLogs.ts";

export interface SplitLogsOptions {
  /** The chain's name, for metrics. */
  readonly chain: string;
  readonly nodes: readonly Node[];
  readonly store: SegmentStore;
  /** Other processes read the learned limits of nodes there; `undefined` without Redis. */
  readonly sharedValues?: SharedValues | undefined;
  /** Shared by all chains of the process. */
  readonly slots: FairScheduler;
  readonly rangesPerNode?: (node: Node) => number;
  /** Timeout of one fetch range on one node. */
  readonly spanTimeoutMs?: number;
  readonly clock?: Clock;
  /** Limit of a response's size; `undefined` means no limit. */
  readonly maxResponseBytes?: number | undefined;
  /** If it is `undefined`, logs are not verified against filters, blooms and receipts. */
  readonly verification?: LogVerification;
  /** Number of origins that must have the same logs of a range: 1 or 2. Default: 1. */
  readonly agree?: number;
  /** Counts received logs. Default: they are not counted. */
  readonly memory?: MemoryBudget | undefined;
  readonly telemetry: Telemetry;
}

/** Returns the logs of sealed blocks: complete, ordered, without duplicates, over any range. */
export interface SplitLogs {
  request(
    filter: LogFilter,
    blocks: BlockRange | { readonly blockHash: Hash },
    context: RequestContext,
  ): Promise<RpcResponse>;
}

const RANGES_PER_NODE = 8;
const RANGE_TIMEOUT_MS = 30_000;
const rangesOfAnyNode = () => RANGES_PER_NODE;

const createFetcher = (options: SplitLogsOptions, limits: NodeLimits, { rangeBlocks }: SharedLimits): FetchLogs =>
  shareFetches(
    createFetchLogs({
      chain: options.chain,
      nodes: options.nodes,
      limits,
      rangeBlocks,
      slots: options.slots,
      rangesPerNode: options.rangesPerNode ?? rangesOfAnyNode,
      checkLogs: createCheckLogs(),
      fillTimestamps: createFillTimestamps(),
      verification: options.verification,
      comparesOrigins: (options.agree ?? 1) > 1,
      spanTimeoutMs: options.spanTimeoutMs ?? RANGE_TIMEOUT_MS,
      clock: options.clock,
      telemetry: options.telemetry,
    }),
  );

class SegmentedLogs implements SplitLogs {
  readonly #options: SplitLogsOptions;
  readonly #limits = createNodeLimits();
  readonly #sharedLimits: SharedLimits;
  readonly #fetchLogs: FetchLogs;
  readonly #logsOfBlock: LogsOfBlock;

  constructor(options: SplitLogsOptions) {
    const { chain, nodes, store, sharedValues: values, telemetry } = options;
    this.#options = options;
    this.#sharedLimits = new SharedLimits({ chain, nodes, limits: this.#limits, values, telemetry });
    this.#fetchLogs = createFetcher(options, this.#limits, this.#sharedLimits);
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
    const { chain, nodes, store, memory, telemetry, rangesPerNode = rangesOfAnyNode } = this.#options;
    const blocks = Number(range.to - range.from) + 1;
    telemetry.metrics.logRangeBlocks.observe({ chain }, blocks);
    const ranges = splitIntoSegments(range, context.view.heads.finalized?.number);
    const query = { filter, filterHash: hashFilter(canonicalLogFilter(filter)) };
    const collector = collectLogs(ranges, query, context, {
      store,
      memory,
      fetchLogs: this.#fetchLogs,
      limits: this.#limits,
      rangeBlocks: this.#sharedLimits.rangeBlocks,
      isTried: this.#sharedLimits.isTried,
      // Not more than the nodes serve at once: a range that is cut later is cut by better known limits.
      maxRanges: nodes.reduce((sum, node) => sum + rangesPerNode(node), 0),
    });
    const onLate = () => collector.close(upstreamTimeout("The logs took too long; the fetched part is cached"));
    const timer = setTimeout(onLate, Math.max(0, context.deadlineMs - performance.now()));
    try {
      await this.#sharedLimits.load(blocks);
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
export const splitLogs = (options: SplitLogsOptions): SplitLogs => new SegmentedLogs(options);
