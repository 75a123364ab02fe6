import { systemClock } from "../core/clock.ts";
import type { Context } from "../core/context.ts";
import { type Node, NodeError } from "../core/node.ts";
import type { LogFilter } from "../ethereum/logFilter.ts";
import { RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import type { Lease } from "../limits/fairGate.ts";
import { type LogsBlock, wrongLogs } from "../verification/logVerifier.ts";
import {
  addMissing,
  type CheckedLogs,
  compareLogs,
  LogTimestamps,
  planRechecks,
  type Recheck,
  rejectOtherBranch,
  rejectUnfound,
  type Timestamps,
} from "./completeness.ts";
import { FailedNodes, FetchRetries } from "./fetchRetries.ts";
import type { LogsOptions } from "./logsOptions.ts";
import { formatList, joinLogs, orderLogs } from "./mergeLogs.ts";
import type { NodeLimits } from "./nodeLimits.ts";
import {
  blocksOf,
  type FetchRange,
  fitFetchRange,
  halveFetchRange,
  lastFinal,
  RefusedRange,
  splitFinal,
} from "./plan.ts";
import { PrunePoints, RangeNodes } from "./rangeNodes.ts";
import { logsOfReceipts } from "./receiptLogs.ts";
import { dropShortLogs, type FetchContext, type RangeResponse, requestLogs } from "./requestLogs.ts";
import type { ScannedLog } from "./scanLogs.ts";

export interface FetchedLogs {
  /** Ordered by block and log index, without duplicates. */
  readonly logs: readonly ScannedLog[];
  readonly timestamps: Timestamps;
  /** The block ring has every block of the range: the logs may be cached as recent. */
  readonly verified: boolean;
  readonly nodes: ReadonlySet<string>;
}

export type FetchLogs = (range: FetchRange, context: FetchContext) => Promise<FetchedLogs>;

/** Fetches the logs of one block from its receipts. Undefined if they are not read from there. */
export type FetchReceiptLogs = (
  block: LogsBlock,
  filter: LogFilter,
  context: Context,
) => Promise<FetchedLogs | undefined>;

const RANGE_TIMEOUT_MS = 30_000;
/** Other origins that may be wrong before the comparison ends. */
const MAX_COMPARISONS = 2;
/** A node's error for pruned data. Other missing data may appear later. */
const PRUNED = /prun|histor|archive|missing trie|no longer/i;

/**
 * Fetches ranges from the nodes that have them, whatever their limits are. It retries each by RETRY_RULES, and splits it if a node
 * rejects it as too large. It fetches what a node left out, and compares the logs with those of another origin.
 */
export class RangeFetcher {
  readonly #options: LogsOptions;
  readonly #limits: NodeLimits;
  readonly #rangeNodes: RangeNodes;
  readonly #prunePoints: PrunePoints;
  readonly #timestamps: LogTimestamps;
  readonly #comparesOrigins: boolean;

  constructor(options: LogsOptions, limits: NodeLimits) {
    this.#options = options;
    this.#limits = limits;
    this.#timestamps = new LogTimestamps(options.verifier);
    this.#rangeNodes = new RangeNodes(options, limits);
    this.#prunePoints = new PrunePoints(options.clock ?? systemClock);
    const origins = new Set(options.nodes.map(({ origin }) => origin));
    this.#comparesOrigins = options.agree > 1 && origins.size > 1;
  }

  readonly fetch: FetchLogs = async (range, context) => {
    const retries = context.retries.fork();
    try {
      return await this.#fetchFromNodes(range, context.withFetch({ retries }));
    } finally {
      context.retries.join(retries);
    }
  };

  async #fetchFromNodes(range: FetchRange, context: FetchContext): Promise<FetchedLogs> {
    const ofReceipts = await this.#fetchBlock(range, context);
    if (ofReceipts !== undefined) {
      return ofReceipts;
    }
    const failed = new FailedNodes(context.retries);
    for (;;) {
      const halves = this.#rangeNodes.hasNodeFor(range) ? undefined : splitFinal(range, context.view.heads);
      if (halves !== undefined) {
        return this.#fetchParts(halves, context);
      }
      const lease = await this.#rangeNodes.acquire(range, context, failed);
      const { place: node } = lease;
      const fitting = fitFetchRange(range, this.#limits.of(node).blocks);
      if (fitting.length > 1) {
        lease.release();
        return this.#fetchParts(fitting, context);
      }
      try {
        return await this.#fetchFrom(lease, range, context);
      } catch (error) {
        context.owner.signal.throwIfAborted();
        const parts = this.#splitRefused(node, range, context, error);
        if (parts !== undefined) {
          return this.#fetchParts(parts, context);
        }
        failed.record(node, error);
      }
    }
  }

  async #fetchParts(parts: readonly FetchRange[], context: FetchContext): Promise<FetchedLogs> {
    const fetched = parts.map((part) =>
      this.fetch(part, context.withFetch({ isPlanned: false, retries: new FetchRetries() })),
    );
    return mergeParts(await Promise.all(fetched));
  }

  async #fetchFrom(
    { place: node, release }: Lease<Node>,
    range: FetchRange,
    context: FetchContext,
  ): Promise<FetchedLogs> {
    const { chain, telemetry } = this.#options;
    const returned = await this.#request(node, range, context).finally(release);
    const { logs: complete, verified } = await this.#complete({ node, range, logs: returned, context });
    const response = { node, range, logs: dropShortLogs(range.filter, complete), context };
    await this.#verify(response);
    const isConfirmed = await this.#confirm(response);
    const { logs } = response;
    const timestamps =
      range.comparedOrigin === undefined ? await this.#timestamps.fill(logs, node, context) : new Map();
    telemetry.metrics.logSpans.inc({ chain, outcome: "ok" });
    return { logs, timestamps, verified: verified && isConfirmed, nodes: new Set([node.name]) };
  }

  async #request(node: Node, range: FetchRange, context: FetchContext): Promise<readonly ScannedLog[]> {
    const { verifier, rangeTimeoutMs = RANGE_TIMEOUT_MS } = this.#options;
    const deadlineMs = performance.now() + rangeTimeoutMs;
    const logs = await requestLogs(node, range, context.with({ deadlineMs }), verifier?.checksFilter === true);
    if (range.blockHash === undefined) {
      this.#limits.of(node).recordAccepted(blocksOf(range));
    }
    return logs;
  }

  /** Adds the logs that the node left out. Throws if the node may lack more, or is on another branch. */
  async #complete(response: RangeResponse): Promise<CheckedLogs> {
    const { range, logs, context } = response;
    const { finalized } = context.view.heads;
    if (range.blockHash !== undefined) {
      // A node that has pruned the block returns [].
      if (logs.length === 0 && finalized !== undefined && range.to <= finalized.number) {
        await this.#prunePoints.check(response);
      }
      // A block by its hash need not be canonical. Its logs have that hash.
      return { logs, verified: true };
    }
    rejectOtherBranch(response);
    if (lastFinal(range, context.view.heads) !== undefined) {
      await this.#prunePoints.check(response);
    }
    return addMissing(response, await this.#fetchMissing(response));
  }

  async #fetchMissing(response: RangeResponse): Promise<readonly ScannedLog[]> {
    const { context } = response;
    try {
      const found = planRechecks(response).map((recheck) => this.#recheck(recheck, context));
      return (await Promise.all(found)).flat();
    } catch (error) {
      if (error instanceof NodeError && error.kind === "missingData") {
        return rejectUnfound(response);
      }
      throw error;
    }
  }

  async #recheck({ ranges, blocks }: Recheck, context: FetchContext): Promise<readonly ScannedLog[]> {
    for (const range of ranges) {
      const { logs } = await this.fetch(range, context.withFetch({ isPlanned: false }));
      if (logs.length > 0) {
        return blocks === undefined ? logs : logs.filter(({ block }) => blocks.has(block));
      }
    }
    return [];
  }

  /** Returns the logs of one block from its receipts, which verify them. Undefined if a request for logs costs less. */
  readonly fetchFromReceipts: FetchReceiptLogs = async (block, filter, context) => {
    const receipts = await this.#options.verifier?.readReceipts(block, context);
    const logs = receipts && logsOfReceipts(receipts, filter);
    const timestamps = logs && (await this.#timestamps.fillBlock(logs, context));
    return timestamps && { logs, timestamps, verified: true, nodes: new Set() };
  };

  /**
   * Blocks that are fetched again, or for a comparison, are asked for as part of their range. For a block by its hash, the caller
   * has read the receipts.
   */
  async #fetchBlock(range: FetchRange, context: FetchContext): Promise<FetchedLogs | undefined> {
    const { from, to, blockHash, final, isRecheck, avoided, comparedOrigin, filter } = range;
    const isPart = isRecheck === true || avoided !== undefined || comparedOrigin !== undefined;
    if (from !== to || blockHash !== undefined || isPart) {
      return undefined;
    }
    const hash = context.view.heads.at(from)?.hash;
    const block = hash === undefined ? final && { number: from } : { hash };
    return block === false ? undefined : this.fetchFromReceipts(block, filter, context);
  }

  /** Rejects with UnverifiedError if the logs are not those of their blocks. */
  async #verify({ node, range, logs, context }: RangeResponse): Promise<void> {
    const { verifier } = this.#options;
    const { from, to, isRecheck, filter } = range;
    if (verifier?.hasWrongTimestamp(logs, context) === true) {
      throw wrongLogs(node);
    }
    const evidence = await verifier?.findEvidence(filter, logs, context, from === to && isRecheck !== true);
    if (evidence !== undefined) {
      await verifier?.check(node, formatList([joinLogs(logs)]), evidence);
    }
  }

  /**
   * Whether a node of another origin has the same logs, if origins are compared. Blocks that are fetched again belong to a range,
   * which is compared as a whole. Rejects with UnverifiedError if the receipts of a block show that the node is wrong.
   */
  async #confirm(response: RangeResponse): Promise<boolean> {
    const { nodes, verifier } = this.#options;
    const { range } = response;
    const isPart = range.comparedOrigin !== undefined || range.isRecheck === true || range.avoided !== undefined;
    if (isPart || !this.#comparesOrigins || verifier === undefined) {
      return true;
    }
    for (let count = 0; count < MAX_COMPARISONS; count++) {
      const other = await this.#fetchOther(response);
      const outcome = other ? await compareLogs(response, other, verifier, nodes) : "undecided";
      if (outcome !== "otherIsWrong") {
        return outcome === "same";
      }
    }
    return false;
  }

  /** Returns undefined if no other origin has the range now. */
  async #fetchOther({ node, range, context }: RangeResponse): Promise<FetchedLogs | undefined> {
    try {
      const own = context.withFetch({ isPlanned: false, retries: new FetchRetries() });
      return await this.fetch({ ...range, comparedOrigin: node.origin }, own);
    } catch (error) {
      context.owner.signal.throwIfAborted();
      if (error instanceof RpcError) {
        return undefined;
      }
      throw error;
    }
  }

  /**
   * Records a node's error. Returns the parts of a range that was too large, and undefined for other errors.
   * Throws what is not a node's error, and RefusedRange if the query can plan the range again.
   */
  #splitRefused(
    node: Node,
    range: FetchRange,
    context: FetchContext,
    error: unknown,
  ): readonly FetchRange[] | undefined {
    const { chain, telemetry } = this.#options;
    if (!(error instanceof NodeError)) {
      throw error;
    }
    const { refusal } = error;
    const parts = refusal && halveFetchRange(range, refusal);
    telemetry.metrics.logSpans.inc({ chain, outcome: parts ? "tooLarge" : error.kind });
    const blocks = blocksOf(range);
    if (range.blockHash === undefined && refusal === "width") {
      this.#limits.of(node).recordRefused(blocks);
    }
    const isTooWide = refusal === "width" && blocks > this.#limits.best.blocks;
    if (context.isPlanned && blocks > 1 && (isTooWide || refusal === "size")) {
      throw new RefusedRange(node, range, refusal);
    }
    const hasFinal = lastFinal(range, context.view.heads) !== undefined;
    if (parts === undefined && hasFinal && error.kind === "missingData" && PRUNED.test(error.message)) {
      node.recordPruned("eth_getLogs", range.from);
    }
    return parts;
  }
}

const mergeParts = (parts: readonly FetchedLogs[]): FetchedLogs => {
  const logs = orderLogs(parts.flatMap((part) => part.logs));
  if (logs === undefined) {
    throw unavailable("The nodes disagree about the chain");
  }
  return {
    logs,
    timestamps: new Map(parts.flatMap(({ timestamps }) => [...timestamps])),
    verified: parts.every(({ verified }) => verified),
    nodes: new Set(parts.flatMap(({ nodes }) => [...nodes])),
  };
};
