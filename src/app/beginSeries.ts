import type { FailureReason } from "../cache/redisHealth.ts";
import type { ChainConfig } from "../config/schema.ts";
import type { Check, NodeErrorKind } from "../core/node.ts";
import type { RetentionClass } from "../core/rpcSource.ts";
import type { PendingMode } from "../core/view.ts";
import type { MessageFault } from "../feed/message.ts";
import type { Decision } from "../feed/sequenceState.ts";
import type { UnverifiedReason } from "../pending/execution.ts";
import type { Difference } from "../pending/reconcile.ts";
import type { RunKind } from "../simulation/simulator.ts";
import { OUTCOMES } from "../telemetry/callMetrics.ts";
import type { Metrics } from "../telemetry/telemetry.ts";
import { COMPUTED_CHECKS } from "../verification/evidence.ts";

/** All members of a closed set: the compiler sees that none is missing. */
const all = <T extends string>(set: Record<T, true>): readonly T[] => Object.keys(set) as T[];

const LIFETIMES = all<Exclude<RetentionClass, "never">>({
  constant: true,
  byHash: true,
  final: true,
  recent: true,
  recentState: true,
  head: true,
  byTransaction: true,
});
const LOOKUPS = ["memory", "redis", "absent", "miss", "bypass"];
const NODE_ERRORS = all<NodeErrorKind>({
  billing: true,
  rateLimited: true,
  tooLarge: true,
  tagUnsupported: true,
  missingData: true,
  otherBranch: true,
  timeout: true,
  revert: true,
  rejected: true,
  unsupportedMethod: true,
  unauthorized: true,
  unreachable: true,
  invalidAnswer: true,
  unverified: true,
  other: true,
});
const CHECKS = all<Check>({
  json: true,
  id: true,
  status: true,
  block: true,
  transaction: true,
  logs: true,
  header: true,
  transactions: true,
  receipts: true,
  depositReceipts: true,
});
const MODES = all<PendingMode>({
  live: true,
  unverified: true,
  degraded: true,
  stale: true,
  native: true,
  node: true,
  none: true,
});
const DECISIONS = all<Decision | MessageFault | "undecodable" | "payloadEnd">({
  first: true,
  next: true,
  firstOfNextBlock: true,
  replacement: true,
  gap: true,
  waiting: true,
  wrongParent: true,
  early: true,
  unconfirmed: true,
  duplicate: true,
  old: true,
  tooFar: true,
  tooLarge: true,
  notJson: true,
  notAMessage: true,
  badBase: true,
  badDiff: true,
  undecodable: true,
  payloadEnd: true,
});
const UNVERIFIED = all<UnverifiedReason>({
  gas: true,
  bloom: true,
  receiptsRoot: true,
  undecodable: true,
  foreignChain: true,
  unexecutable: true,
  rejected: true,
  failed: true,
  unreadable: true,
  tooMuchState: true,
  late: true,
});
const DIFFERENCES = all<Difference>({ transactions: true, gas: true, bloom: true, receiptsRoot: true });
const RUNS = all<RunKind>({ simulate: true, call: true, estimateGas: true, createAccessList: true });
const REDIS_FAILURES = all<FailureReason | "corrupt">({
  timeout: true,
  disconnected: true,
  overloaded: true,
  paused: true,
  readonly: true,
  full: true,
  loading: true,
  cluster: true,
  refused: true,
  other: true,
  corrupt: true,
});
const SUBSCRIPTIONS = [
  "newHeads",
  "logs",
  "syncing",
  "newPendingTransactions",
  "pendingLogs",
  "newFlashblocks",
  "newFlashblockTransactions",
];
const STATUSES = [200, 204, 400, 401, 404, 405, 415, 429, 503, 504];

/**
 * Series with labels from closed sets begin at 0: a rate over what has not happened yet is then 0 and not nothing, and the
 * first time that something happens is seen as an increase.
 */
export const beginProcessSeries = (metrics: Metrics, hasRedis: boolean): void => {
  for (const status of STATUSES) metrics.httpResponses.inc({ status }, 0);
  for (const reason of ["key", "method", "rate"]) metrics.accessRefused.inc({ reason }, 0);
  for (const outcome of ["applied", "refused"]) metrics.reloads.inc({ outcome }, 0);
  if (!hasRedis) return;
  for (const reason of REDIS_FAILURES) metrics.redisErrors.inc({ reason }, 0);
  for (const operation of ["get", "set", "script"]) metrics.redisSeconds.zero({ operation });
};

const beginNode = (metrics: Metrics, chain: string, node: string): void => {
  for (const outcome of ["ok", ...NODE_ERRORS]) metrics.upstreamRequests.inc({ chain, node, outcome }, 0);
  metrics.upstreamCalls.inc({ chain, node, method: "other" }, 0);
  metrics.upstreamSeconds.zero({ chain, node });
  metrics.upstreamSpanLimit.inc({ chain, node }, 0);
  metrics.upstreamRejectedHeads.inc({ chain, node }, 0);
  metrics.upstreamSuspended.inc({ chain, node }, 0);
  for (const check of CHECKS) metrics.verifyFailures.inc({ chain, node, check }, 0);
};

const beginFeed = (metrics: Metrics, chain: string): void => {
  for (const decision of DECISIONS) metrics.feedMessages.inc({ chain, decision }, 0);
  for (const what of new Set([...UNVERIFIED, ...DIFFERENCES])) metrics.pendingMismatches.inc({ chain, what }, 0);
  for (const cause of UNVERIFIED) metrics.pendingUnverified.inc({ chain, cause }, 0);
  for (const counter of [metrics.feedGaps, metrics.feedReconnects, metrics.pendingVanished]) counter.inc({ chain }, 0);
  metrics.pendingExecuteSeconds.zero({ chain });
};

/** What has no place in the feed of this chain, or cannot be executed, has no series. */
export const beginChainSeries = (metrics: Metrics, { name: chain, nodes, pending }: ChainConfig): void => {
  for (const outcome of OUTCOMES) metrics.requests.inc({ chain, method: "other", outcome }, 0);
  metrics.requestSeconds.zero({ chain, method: "other" });
  for (const retention of LIFETIMES) {
    metrics.cacheStored.inc({ chain, class: retention }, 0);
    for (const outcome of LOOKUPS) metrics.cacheLookups.inc({ chain, class: retention, outcome }, 0);
  }
  for (const [index, { name = `node${index + 1}` }] of nodes.entries()) beginNode(metrics, chain, name);
  for (const check of CHECKS) metrics.verifySkipped.inc({ chain, check }, 0);
  for (const check of COMPUTED_CHECKS) metrics.verifyOff.set({ chain, check }, 0);
  for (const outcome of ["ok", "tooLarge"]) metrics.logSpans.inc({ chain, outcome }, 0);
  for (const source of ["cache", "node"]) metrics.logSegments.inc({ chain, source }, 0);
  for (const dimension of ["blocks", "addresses", "topics"]) metrics.logSplits.inc({ chain, dimension }, 0);
  for (const mode of MODES) metrics.pendingAnswers.inc({ chain, mode }, 0);
  for (const kind of RUNS) {
    for (const outcome of ["ok", "error", "forwarded"]) metrics.simulateRuns.inc({ chain, kind, outcome }, 0);
    metrics.simulateSeconds.zero({ chain, kind });
  }
  const { upstreamRetries, upstreamHedges, reorgs, simulateFetched, deadlineHits } = metrics;
  for (const counter of [upstreamRetries, upstreamHedges, reorgs, simulateFetched, deadlineHits]) {
    counter.inc({ chain }, 0);
  }
  for (const histogram of [metrics.logRangeBlocks, metrics.reorgDepth, metrics.simulateRounds]) {
    histogram.zero({ chain });
  }
  for (const kind of SUBSCRIPTIONS) {
    metrics.subscriptions.inc({ chain, kind }, 0);
    metrics.delivered.inc({ chain, kind }, 0);
  }
  if (pending.feeds.length > 0) beginFeed(metrics, chain);
};
