import { type Clock, systemClock } from "../core/clock.ts";
import type { Node } from "../core/node.ts";
import { formatLogFilter } from "../ethereum/logFilter.ts";
import { type RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import type { FairScheduler, Lease } from "../limits/fairScheduler.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { CheckLogs, FetchBlock } from "./checkLogs.ts";
import { chooseNode, isEligible } from "./chooseNode.ts";
import { FailedNodes } from "./failedNodes.ts";
import { blocksOf, type FetchRange, fitFetchRange, splitFinal } from "./fetchRange.ts";
import { FetchRetries } from "./fetchRetries.ts";
import type { FillTimestamps, Timestamps } from "./fillTimestamps.ts";
import { createLogMatcher } from "./matchScanned.ts";
import { orderLogs } from "./mergeLogs.ts";
import type { NodeLimits } from "./nodeLimits.ts";
import { OriginLogs } from "./originLogs.ts";
import { readLogs } from "./readLogs.ts";
import { type CountBytes, type FetchContext, invalidAnswer, otherBranch, requestLogs } from "./requestLogs.ts";
import type { ScannedLog } from "./scanLogs.ts";
import { createSplitRefused, type SplitRefused } from "./splitRefused.ts";
import { dropShortLogs, withoutEmptyTail } from "./topicCount.ts";
import { createVerifyLogs, type LogVerification, type VerifyLogs, wrongLogs } from "./verifyLogs.ts";

export interface FetchedLogs {
  /** Ordered by block and log index, without duplicates. */
  readonly logs: readonly ScannedLog[];
  readonly timestamps: Timestamps;
  /** The block ring has every block of the range: the logs may be cached as recent. */
  readonly verified: boolean;
  readonly nodes: ReadonlySet<string>;
}

export type FetchLogs = (range: FetchRange, context: FetchContext) => Promise<FetchedLogs>;

export interface FetchLogsOptions {
  readonly chain: string;
  readonly nodes: readonly Node[];
  readonly limits: NodeLimits;
  readonly slots: FairScheduler;
  readonly rangesPerNode: (node: Node) => number;
  readonly checkLogs: CheckLogs;
  readonly fillTimestamps: FillTimestamps;
  /** If it is undefined, logs are not verified against filters, blooms and receipts. */
  readonly verification: LogVerification | undefined;
  /** Whether a second origin must have the same logs. */
  readonly comparesOrigins: boolean;
  readonly spanTimeoutMs: number;
  readonly clock?: Clock | undefined;
  readonly telemetry: Telemetry;
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

/** Fetches ranges: retries each by RETRY_RULES, and splits it if a node rejects it as too large. */
class RangeFetcher {
  readonly #options: FetchLogsOptions;
  readonly #verifiesFilter: boolean;
  readonly #verifyLogs: VerifyLogs | undefined;
  readonly #splitRefused: SplitRefused;
  readonly #originLogs: OriginLogs | undefined;

  constructor(options: FetchLogsOptions) {
    const { verification } = options;
    this.#options = options;
    this.#verifiesFilter = verification !== undefined && verification.verifier.level !== "off";
    this.#splitRefused = createSplitRefused(options);
    this.#verifyLogs = verification && createVerifyLogs(verification);
    const fetchLogs: FetchLogs = (range, context) => this.fetch(range, context);
    const { nodes, comparesOrigins } = options;
    this.#originLogs = verification && comparesOrigins ? new OriginLogs({ nodes, verification, fetchLogs }) : undefined;
  }

  async fetch(range: FetchRange, context: FetchContext): Promise<FetchedLogs> {
    const retries = context.retries.fork();
    try {
      return await this.#fetchFromNodes(range, { ...context, retries });
    } finally {
      context.retries.join(retries);
    }
  }

  async #fetchFromNodes(range: FetchRange, context: FetchContext): Promise<FetchedLogs> {
    const { limits } = this.#options;
    const { filterHash } = context;
    const failed = new FailedNodes(context.retries);
    for (;;) {
      const halves = this.#hasNodeFor(range) ? undefined : splitFinal(range, context.view.heads);
      if (halves !== undefined) {
        return this.#fetchParts(halves, context);
      }
      const lease = await this.#acquire(range, context, failed);
      const { node } = lease;
      const fitting = fitFetchRange(range, { ...limits.lists(node), blocks: limits.blocks(node, filterHash) });
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

  #hasNodeFor(range: FetchRange): boolean {
    const { from, to } = range;
    return this.#options.nodes.some(
      (node) =>
        isEligible(node, range) && node.usable && node.oldest <= from && node.head !== undefined && node.head >= to,
    );
  }

  /** Waits for a slot and a node; if all nodes have failed, for the next round. Throws after the last round. */
  async #acquire(range: FetchRange, { owner, filterHash }: FetchContext, failed: FailedNodes): Promise<Lease> {
    const { slots, clock = systemClock } = this.#options;
    for (;;) {
      const lease = await slots.acquire(owner, () => chooseNode(this.#options, range, filterHash, failed));
      if (lease !== undefined) {
        return lease;
      }
      const delayMs = failed.startRound(() => this.#isExpected(range));
      if (delayMs === undefined) {
        throw failed.mainError ?? this.#noNode(range);
      }
      await clock.sleep(delayMs, owner.signal);
      owner.signal.throwIfAborted();
    }
  }

  /**
   * Whether a node will have the range soon. The view has these blocks.
   * A node that has since reported an older head is several machines, and will report the newer head again.
   */
  #isExpected(range: FetchRange): boolean {
    return (
      range.node === undefined &&
      this.#options.nodes.some((node) => isEligible(node, range) && node.usable && node.oldest <= range.from)
    );
  }

  /** A node that is behind will have the view's blocks: the view retries that as it retries another branch. */
  #noNode(range: FetchRange): RpcError {
    const message = `No node has the logs of blocks ${range.from} to ${range.to}`;
    const behind = this.#isExpected(range) ? this.#options.nodes.find(({ usable }) => usable) : undefined;
    return behind === undefined ? unavailable(message) : otherBranch(behind, message);
  }

  async #fetchFrom({ node, release }: Lease, range: FetchRange, context: FetchContext): Promise<FetchedLogs> {
    const { chain, checkLogs, fillTimestamps, telemetry } = this.#options;
    const returned = await this.#request(node, range, context).finally(release);
    const { logs: checked, verified } = await checkLogs({
      node,
      range,
      logs: returned,
      context,
      fetchBlock: this.#fetchBlock,
    });
    const logs = dropShortLogs(range.filter, checked);
    const isProven = await this.#verifyLogs?.(node, range, logs, context);
    const isConfirmed = isProven || ((await this.#originLogs?.confirm(node, range, logs, context)) ?? true);
    const timestamps = range.comparedOrigin === undefined ? await fillTimestamps(logs, node, context) : new Map();
    telemetry.metrics.logSpans.inc({ chain, outcome: "ok" });
    return { logs, timestamps, verified: verified && isConfirmed, nodes: new Set([node.name]) };
  }

  async #request(node: Node, range: FetchRange, context: FetchContext): Promise<readonly ScannedLog[]> {
    const { limits, spanTimeoutMs } = this.#options;
    let bytes = 0;
    const countBytes: CountBytes = (more) => {
      bytes += more;
      context.countBytes(more);
    };
    const blocks = range.blockHash === undefined ? range : { blockHash: range.blockHash };
    const deadlineMs = performance.now() + spanTimeoutMs;
    const params = [formatLogFilter(range.filter, blocks)];
    const text = await requestLogs(node, "eth_getLogs", params, { ...context, deadlineMs, countBytes });
    const logs = readLogs(text, {
      range,
      matches: this.#verifiesFilter ? createLogMatcher(withoutEmptyTail(range.filter)) : () => true,
      createError: (message) => (this.#verifiesFilter ? wrongLogs(node) : invalidAnswer(node, message)),
    });
    if (range.blockHash === undefined) {
      limits.recordSuccess(node, context.filterHash, blocksOf(range), { logs: logs.length, bytes });
    }
    return logs;
  }

  async #fetchParts(parts: readonly FetchRange[], context: FetchContext): Promise<FetchedLogs> {
    const fetched = parts.map((part) =>
      this.fetch(part, { ...context, isPlanned: false, retries: new FetchRetries() }),
    );
    return mergeParts(await Promise.all(fetched));
  }

  readonly #fetchBlock: FetchBlock = async (range, context) =>
    (await this.fetch(range, { ...context, isPlanned: false })).logs;
}

/** Creates the function that fetches a range from the nodes that have it, whatever their limits are. */
export const createFetchLogs = (options: FetchLogsOptions): FetchLogs => {
  const fetcher = new RangeFetcher(options);
  return (range, context) => fetcher.fetch(range, context);
};
