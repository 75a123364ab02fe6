import { setTimeout as delay } from "node:timers/promises";
import { type Node, NodeError, type NodeErrorKind } from "../core/node.ts";
import { formatLogFilter } from "../ethereum/logFilter.ts";
import { type RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import type { Choice, FairScheduler } from "../limits/fairScheduler.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { CheckLogs, FetchBlock } from "./checkLogs.ts";
import { blocksOf, type FetchRange, fitFetchRange, halveFetchRange } from "./fetchRange.ts";
import type { FillTimestamps, Timestamps } from "./fillTimestamps.ts";
import { createMatch } from "./matchScanned.ts";
import { orderLogs } from "./mergeLogs.ts";
import type { NodeLimits } from "./nodeLimits.ts";
import { parseTooLarge } from "./rangeTooLarge.ts";
import { type FetchContext, invalidAnswer, requestLogs, type TakeBytes } from "./requestLogs.ts";
import { type ScannedLog, scanLogs } from "./scanLogs.ts";
import { dropShortLogs, withoutEmptyTail } from "./topicCount.ts";
import { createVerifyLogs, type LogVerification, wrongLogs } from "./verifyLogs.ts";

export interface Fetched {
  /** Ordered, each once. */
  readonly logs: readonly ScannedLog[];
  readonly timestamps: Timestamps;
  /** The ring stands for every block of it: it may be kept as recent. */
  readonly verified: boolean;
  readonly nodes: ReadonlySet<string>;
}

export type FetchLogs = (job: FetchRange, context: FetchContext) => Promise<Fetched>;

export interface FetchLogsOptions {
  readonly chain: string;
  readonly nodes: readonly Node[];
  readonly limits: NodeLimits;
  readonly slots: FairScheduler;
  readonly spansPerNode: (node: Node) => number;
  readonly checkLogs: CheckLogs;
  readonly fillTimestamps: FillTimestamps;
  /** Undefined: what nodes answer is not held against filters, blooms and receipts. */
  readonly verification: LogVerification | undefined;
  readonly spanTimeoutMs: number;
  /** Before nodes that failed are asked again; doubled each time. */
  readonly retryDelayMs?: number;
  readonly telemetry: Telemetry;
}

/** Another round over all nodes may help against these. */
const PASSING: ReadonlySet<NodeErrorKind> = new Set(["timeout", "unreachable", "rateLimited", "invalidAnswer"]);
const MAX_ROUNDS = 4;
const RETRY_DELAY_MS = 50;
/** What a node says of data that it had once; other missing data may still come. */
const PRUNED = /prun|histor|archive|missing trie|no longer/i;

const isPassing = (error: unknown): boolean => error instanceof NodeError && PASSING.has(error.kind);

/** Lets those nodes be asked again whose failure may have passed; false where there are none, or it was the last round. */
const startRound = (failed: Map<Node, unknown>, round: number): boolean => {
  if (round >= MAX_ROUNDS) return false;
  const passing = [...failed].filter(([, error]) => isPassing(error));
  for (const [node] of passing) failed.delete(node);
  return passing.length > 0;
};

/** What the caller hears: rather what a node said about the question than that another was out of reach. */
const worstOf = (failed: ReadonlyMap<Node, unknown>): unknown =>
  [...failed.values()].find((error) => !isPassing(error)) ?? [...failed.values()].at(-1);

const noNode = ({ from, to }: FetchRange): RpcError => unavailable(`No node has the logs of blocks ${from} to ${to}`);

const mergeParts = (parts: readonly Fetched[]): Fetched => {
  const logs = orderLogs(parts.flatMap((part) => part.logs));
  if (logs === undefined) throw unavailable("The nodes disagree about the chain");
  return {
    logs,
    timestamps: new Map(parts.flatMap(({ timestamps }) => [...timestamps])),
    verified: parts.every(({ verified }) => verified),
    nodes: new Set(parts.flatMap(({ nodes }) => [...nodes])),
  };
};

const isWithin = ({ from, to, blockHash }: FetchRange, logs: readonly ScannedLog[]): boolean =>
  blockHash === undefined
    ? logs.every(({ block }) => block >= from && block <= to)
    : logs.every(({ hash }) => hash === blockHash);

/** `wrong` makes the error of an answer that is not what was asked for. */
const readLogs = (
  job: FetchRange,
  bytes: Uint8Array,
  wrong: (message: string) => NodeError,
  matches: (log: ScannedLog) => boolean,
): readonly ScannedLog[] => {
  let logs: readonly ScannedLog[] | undefined;
  try {
    logs = orderLogs(scanLogs(bytes));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw wrong(error.message);
  }
  if (logs === undefined) throw wrong("Logs of two blocks with one number");
  if (!isWithin(job, logs)) throw wrong("Logs outside the range that was asked for");
  if (!logs.every(matches)) throw wrong("Logs that the filter does not match");
  return logs;
};

/** A job on whichever nodes it takes: retried alone on others, halved alone where it is too large. */
export const createFetchLogs = (options: FetchLogsOptions): FetchLogs => {
  const { chain, nodes, limits, slots, spansPerNode, checkLogs, fillTimestamps, spanTimeoutMs } = options;
  const { retryDelayMs = RETRY_DELAY_MS } = options;
  const { metrics } = options.telemetry;
  const verifies = options.verification !== undefined && options.verification.verifier.level !== "off";
  const verifyLogs = options.verification && createVerifyLogs(options.verification);

  const choose = (job: FetchRange, filterHash: string, tried: ReadonlyMap<Node, unknown>): Choice => {
    const able = (job.node === undefined ? nodes : [job.node]).filter(
      (node) => !tried.has(node) && node.oldest <= job.from && node.head !== undefined && node.head >= job.to,
    );
    if (able.length === 0) return "none";
    let best: Node | undefined;
    const size = (node: Node) => Math.min(limits.blocks(node, filterHash), blocksOf(job));
    for (const node of able) {
      if (!node.available || slots.inFlight(node) >= spansPerNode(node)) continue;
      const gain = best === undefined ? 1 : size(node) - size(best) || slots.inFlight(best) - slots.inFlight(node);
      if (gain > 0) best = node;
    }
    return best ?? "busy";
  };

  /** The view holds these blocks: a node that told an older head since, being several machines, will tell the newer one again. */
  const isComing = (job: FetchRange): boolean =>
    job.node === undefined && nodes.some(({ oldest }) => oldest <= job.from);

  const ask = async (node: Node, job: FetchRange, context: FetchContext): Promise<readonly ScannedLog[]> => {
    let bytes = 0;
    const take: TakeBytes = (more) => {
      bytes += more;
      context.take(more);
    };
    const blocks = job.blockHash === undefined ? job : { blockHash: job.blockHash };
    const text = await requestLogs(node, "eth_getLogs", [formatLogFilter(job.filter, blocks)], {
      ...context,
      deadlineMs: performance.now() + spanTimeoutMs,
      take,
    });
    const wrong = (message: string) => (verifies ? wrongLogs(node) : invalidAnswer(node, message));
    const logs = readLogs(job, text, wrong, verifies ? createMatch(withoutEmptyTail(job.filter)) : () => true);
    if (job.blockHash === undefined) {
      limits.worked(node, context.filterHash, blocksOf(job), { logs: logs.length, bytes });
    }
    return logs;
  };

  /** The parts of a refused job; undefined where the error means something else, or nothing is left to halve. */
  const halve = (
    node: Node,
    job: FetchRange,
    filterHash: string,
    error: NodeError,
  ): readonly FetchRange[] | undefined => {
    const tooLarge = parseTooLarge(error);
    if (tooLarge === undefined) return undefined;
    if (job.blockHash === undefined) limits.refused(node, filterHash, blocksOf(job), tooLarge);
    const limit = limits.rangeLimit(node);
    metrics.upstreamSpanLimit.set({ chain, node: node.name }, Number.isFinite(limit) ? limit : 0);
    const [dimension, parts] = halveFetchRange(job, tooLarge) ?? [];
    if (dimension !== undefined) metrics.logSplits.inc({ chain, dimension });
    return parts;
  };

  const fetchParts = async (parts: readonly FetchRange[], context: FetchContext): Promise<Fetched> =>
    mergeParts(await Promise.all(parts.map((part) => fetchJob(part, context))));

  const fetchBlock: FetchBlock = async (job, context) => (await fetchJob(job, context)).logs;

  const fetchJob: FetchLogs = async (job, context) => {
    /** Nodes that have failed, and why; those that may do better are asked again in the next round. */
    const failed = new Map<Node, unknown>();
    const { asker, filterHash } = context;
    for (let round = 1; ; ) {
      const lease = await slots.acquire(asker, () => choose(job, filterHash, failed));
      if (lease === undefined) {
        const again = failed.size > 0 ? startRound(failed, round) : round < MAX_ROUNDS && isComing(job);
        if (!again) throw worstOf(failed) ?? noNode(job);
        await delay(retryDelayMs * 2 ** round, undefined, { signal: asker.signal });
        round++;
        continue;
      }
      const { node } = lease;
      const fitting = fitFetchRange(job, { ...limits.lists(node), blocks: limits.blocks(node, filterHash) });
      if (fitting.length > 1) {
        lease.release();
        return fetchParts(fitting, context);
      }
      try {
        const given = await ask(node, job, context).finally(lease.release);
        const checked = await checkLogs(node, job, given, context, fetchBlock);
        const logs = dropShortLogs(job.filter, checked.logs);
        await verifyLogs?.(node, job, logs, context);
        const timestamps = await fillTimestamps(logs, node, context);
        metrics.logSpans.inc({ chain, outcome: "ok" });
        return { logs, timestamps, verified: checked.verified, nodes: new Set([node.name]) };
      } catch (error) {
        asker.signal.throwIfAborted();
        if (!(error instanceof NodeError)) throw error;
        const parts = halve(node, job, filterHash, error);
        metrics.logSpans.inc({ chain, outcome: parts ? "tooLarge" : error.kind });
        if (parts !== undefined) return fetchParts(parts, context);
        if (job.final && error.kind === "missingData" && PRUNED.test(error.message)) node.recordPruned(job.from);
        failed.set(node, error);
      }
    }
  };

  return fetchJob;
};
