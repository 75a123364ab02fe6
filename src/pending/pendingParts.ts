import type { SharedValues } from "../core/sharedValues.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { ChainForks } from "../ethereum/rules.ts";
import type { Feed } from "../feed/feedClient.ts";
import type { FeedMessage } from "../feed/feedMessage.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { BaseFeeRule } from "./baseFeeRule.ts";
import { BlockFormatter } from "./blockFormatter.ts";
import { ExecutionPipeline, type ExecutionPipelineOptions } from "./executionPipeline.ts";
import { FeedIntake } from "./feedIntake.ts";
import { HeadReconciliation, type HeadSource } from "./headReconciliation.ts";
import { TransactionFields } from "./nodeTransactionFields.ts";
import { PendingSupportProbe } from "./pendingSupportProbe.ts";
import { type PendingBackend, ServingDecision } from "./servingDecision.ts";
import { SharedNonces, SubmittedNonces } from "./submittedNonces.ts";
import { ViewPublication } from "./viewPublication.ts";

export interface PendingOptions {
  /** Label of metrics. */
  readonly chain: string;
  readonly mode: "auto" | PendingBackend;
  /** Limit of pending blocks above the head. */
  readonly maxDepth: number;
  /** The node's receipts roots are wrong for blocks with deposits. */
  readonly skipsReceiptsRoot: boolean;
  readonly heads: HeadSource;
  /** Returns the chain's rules as far as they are known now. Default: none is known. */
  readonly forks?: () => ChainForks | undefined;
  /** Opens the chain's feeds. Absent if it has none. */
  readonly openFeed?: (onMessage: (message: FeedMessage) => void, blockTimeMs: () => number) => Feed;
  /** Returns the parsed result of one call from a node. Rejects if no node answers. */
  readonly read: (method: string, params: readonly unknown[]) => Promise<unknown>;
  /** Called with transactions of the pending block that was shown last, if the sealed block does not have them. */
  readonly onDropped?: (hashes: readonly Hash[]) => void;
  /** Values that replicas share, so that transactions sent through other replicas count too. */
  readonly sharedValues?: SharedValues | undefined;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
  /** Milliseconds of a monotonic clock. Tests replace it. */
  readonly nowMs?: () => number;
}

/** The shortest deadline of an execution, for a message that waited for others. */
const MIN_EXECUTION_MS = 100;

const createNonces = ({ read, heads, sharedValues, nowMs = () => performance.now() }: PendingOptions) => {
  const local = new SubmittedNonces({
    find: (hashes) => Promise.all(hashes.map((hash) => read("eth_getTransactionByHash", [hash]))),
    head: () => heads.current()?.latest.number ?? 0n,
    nowMs,
    onDropped: (sender, nonce) => shared?.drop(sender, nonce),
  });
  const shared = sharedValues && new SharedNonces(local, sharedValues);
  return { local, shared };
};

/** Returns the function that counts executed messages, and logs those whose state is not verified. */
const reportExecuted = (
  chain: string,
  { log, metrics }: PendingOptions["telemetry"],
): ExecutionPipelineOptions["onExecuted"] => {
  /** Each message of such a chain would log the same. */
  let isUnexecutableTold = false;
  return ({ unverified, cause }, { number, index }, durationMs) => {
    metrics.pendingExecuteSeconds.observe({ chain }, durationMs / 1000);
    if (!unverified) {
      return;
    }
    metrics.pendingMismatches.inc({ chain, what: unverified });
    if (unverified === "unexecutable" && isUnexecutableTold) {
      return;
    }
    isUnexecutableTold ||= unverified === "unexecutable";
    log.warn({ chain, number, index, what: unverified, cause }, "the state of a flashblock is not verified");
  };
};

/** Creates the parts of the pending state. `onChange` is called when an execution ends, or when the result of the probe changes. */
export const createPendingParts = (options: PendingOptions, onChange: { executed(): void; probed(): void }) => {
  const { chain, heads, read, telemetry } = options;
  const { metrics } = telemetry;
  const nowMs = options.nowMs ?? (() => performance.now());
  const blockTimeMs = (): number => heads.blockTimeMs;
  const nonces = createNonces(options);
  const formatted = new BlockFormatter(() => options.forks?.());
  /** While a message executes, the view shows the message before it. The deadline is one block time after its arrival. */
  const deadlineMsOf = ({ receivedMs = nowMs() }: FeedMessage): number =>
    Math.max(blockTimeMs() - (nowMs() - receivedMs), MIN_EXECUTION_MS);
  const pipeline = new ExecutionPipeline({
    deadlineMsOf,
    onChange: onChange.executed,
    onExecuted: reportExecuted(chain, telemetry),
  });
  const probe = new PendingSupportProbe({ read, nowMs, onChange: onChange.probed });
  const verdictOf = (message: FeedMessage) => pipeline.record(message)?.verdict ?? "open";
  const baseFees = new BaseFeeRule(() => options.forks?.());
  const intake = new FeedIntake({ ...options, blockTimeMs, baseFeeAfter: baseFees.after, verdictOf, metrics, nowMs });
  const decision = new ServingDecision({
    ...options,
    hasFeeds: options.openFeed !== undefined,
    feed: intake,
    nodeBuildsPending: probe.nodeBuildsPending,
  });
  const transactionFields = new TransactionFields(read, nowMs);
  const reconciliation = new HeadReconciliation({ ...options, feed: intake, pipeline, transactionFields });
  const publication = new ViewPublication({ formatted, nowMs });
  return { ...nonces, pipeline, probe, baseFees, intake, decision, transactionFields, reconciliation, publication };
};

export type PendingParts = ReturnType<typeof createPendingParts>;
