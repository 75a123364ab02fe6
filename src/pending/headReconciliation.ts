import type { FollowedHeads, Heads, RingBlock } from "../core/heads.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { ExtraBlockFields } from "./applyMessage.ts";
import type { DroppedTransactions } from "./droppedTransactions.ts";
import { ExecutedBlocks } from "./executedBlocks.ts";
import type { ExecutionPipeline } from "./executionPipeline.ts";
import type { FeedIntake } from "./feedIntake.ts";
import type { TransactionFields } from "./nodeTransactionFields.ts";
import { type Passed, type ReconcileOptions, reconcile } from "./reconcile.ts";

export interface HeadReconciliationOptions extends ReconcileOptions {
  /** Label of metrics. */
  readonly chain: string;
  readonly feed: FeedIntake;
  readonly pipeline: ExecutionPipeline;
  readonly transactionFields: Pick<TransactionFields, "hasTimestamp" | "deposit">;
  readonly dropped: Pick<DroppedTransactions, "resolve">;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

/** Compares each sealed block with the pending block of its number, and moves the base of the execution pipeline. */
export class HeadReconciliation {
  /** The sealed blocks that the feed's messages have executed. */
  readonly executedBlocks = new ExecutedBlocks();
  readonly #options: HeadReconciliationOptions;
  /** Blocks that heads replaced while an execution at or below them runs. They are reconciled together. */
  #replaced: RingBlock[] | undefined;

  constructor(options: HeadReconciliationOptions) {
    this.#options = options;
  }

  /** No head waits for reconciliation, so that new messages can be executed. */
  get isIdle(): boolean {
    return this.#replaced === undefined;
  }

  add(replaced: readonly RingBlock[]): void {
    this.#replaced = [...(this.#replaced ?? []), ...replaced];
  }

  /** Reconciles the head. Does nothing while an execution at or below it runs. */
  reconcileHead(head: Heads): void {
    const { pipeline, feed, transactionFields, chain, telemetry } = this.#options;
    const replaced = this.#replaced;
    if (!replaced || pipeline.awaits(head.latest.number)) {
      return;
    }
    this.#replaced = undefined;
    const pending = pipeline.chain();
    if (pending.base.hash === head.latest.hash) {
      pipeline.setBlocks(feed.blocks);
      this.executedBlocks.record(head, [], pipeline);
      return;
    }
    const { passed, isOrphaned } = reconcile(pending, head, replaced, this.#options);
    this.executedBlocks.record(head, passed, pipeline);
    const isExecuted =
      !isOrphaned && passed.some(({ sealed, isResult }) => isResult && sealed?.hash === head.latest.hash);
    if (isOrphaned) {
      telemetry.log.warn({ chain, head: head.latest.number }, "pending blocks were orphaned");
    }
    // If transactions differ, the difference is counted after the sealed block's transactions are read.
    for (const each of passed) {
      if (!each.differences.includes("transactions")) {
        this.#countMismatches(each);
      }
    }
    const published = passed.flatMap((each) => publishedPart(each, pipeline));
    feed.confirm(passed);
    pipeline.rebase(head.latest, isExecuted, {
      ...extraBlockFieldsOf(head),
      hasTransactionTimestamp: transactionFields.hasTimestamp,
      deposit: transactionFields.deposit,
    });
    pipeline.setBlocks(feed.blocks);
    this.#findDropped(published);
  }

  #countMismatches({ differences }: Passed): void {
    const { chain, telemetry } = this.#options;
    for (const what of differences) {
      telemetry.metrics.pendingMismatches.inc({ chain, what });
    }
  }

  #findDropped(passed: readonly Passed[]): void {
    const { chain, dropped, telemetry } = this.#options;
    const onDifference = (differing: Passed): void => this.#countMismatches(differing);
    dropped.resolve(passed, onDifference).catch((err: unknown) => {
      telemetry.log.debug({ chain, err }, "sealed block not compared");
    });
  }
}

/** Returns the part of a pending block that clients have seen. The messages after it were not executed, or were wrong. */
const publishedPart = (passed: Passed, pipeline: Pick<ExecutionPipeline, "record">): readonly Passed[] => {
  const parts = passed.block.parts.filter(({ message }) => pipeline.record(message)?.isShown);
  const newest = parts.at(-1)?.message;
  return newest === undefined ? [] : [{ ...passed, block: { ...passed.block, parts, newest } }];
};

/** The heads of a chain, as the head tracker publishes them. */
export interface HeadSource extends FollowedHeads {
  /** Polls the nodes now. Concurrent calls share one poll. */
  refresh(): Promise<Heads>;
  /** In native mode, sealed blocks answer at `pending`. The heads are then polled once a block. */
  setNative(native: boolean): void;
  readonly blockTimeMs: number;
}

/** Returns the extra fields of the newest sealed block. */
const extraBlockFieldsOf = (heads: Heads): ExtraBlockFields => {
  const totalDifficulty = heads.header(heads.latest.number)?.totalDifficulty;
  return typeof totalDifficulty === "string" ? { block: { totalDifficulty } } : {};
};
