import type { FollowedHeads, Heads, RingBlock } from "../core/heads.ts";
import { type Hash, isHash } from "../ethereum/hex.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { ExtraBlockFields } from "./applyMessage.ts";
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
  /** Returns the parsed result of one call from a node. Rejects if no node answers. */
  readonly read: (method: string, params: readonly unknown[]) => Promise<unknown>;
  /** Called with transactions of the pending block that was shown last, if the sealed block does not have them. */
  readonly onDropped?: ((hashes: readonly Hash[]) => void) | undefined;
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
    for (const each of published.filter(({ differences }) => differences.includes("transactions"))) {
      this.#findDropped(each).catch((err: unknown) => telemetry.log.debug({ chain, err }, "sealed block not compared"));
    }
  }

  #countMismatches({ differences }: Passed): void {
    const { chain, telemetry } = this.#options;
    for (const what of differences) {
      telemetry.metrics.pendingMismatches.inc({ chain, what });
    }
  }

  /** Reads a sealed block whose transactions differ from those that clients have seen, and counts what it lacks. */
  async #findDropped(passed: Passed): Promise<void> {
    const { chain, read, onDropped, telemetry } = this.#options;
    const { block, sealed } = passed;
    const hashes = sealed && hashesOf(await read("eth_getBlockByHash", [sealed.hash, false]));
    if (!hashes) {
      return;
    }
    const preconfirmed = block.parts.flatMap(({ transactions }) => transactions.map(({ hash }) => hash));
    // A block may be sealed before its last flashblocks arrive: then the pending block is a prefix of it.
    if (preconfirmed.some((hash, position) => hashes[position] !== hash)) {
      this.#countMismatches(passed);
    }
    const known = new Set(hashes);
    const dropped = preconfirmed.filter((hash) => !known.has(hash));
    if (dropped.length > 0) {
      telemetry.metrics.pendingDropped.inc({ chain }, dropped.length);
      telemetry.log.warn({ chain, count: dropped.length }, "pre-confirmed transactions were not sealed");
      onDropped?.(dropped);
    }
  }
}

const hashesOf = (block: unknown): readonly Hash[] | undefined => {
  if (typeof block !== "object" || block === null || !("transactions" in block)) {
    return undefined;
  }
  const { transactions } = block;
  return Array.isArray(transactions) ? transactions.filter(isHash) : undefined;
};

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
