import type { Heads, RingBlock } from "../core/heads.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { createDroppedTransactions } from "./droppedTransactions.ts";
import type { ExecutionPipeline } from "./executionPipeline.ts";
import type { FeedIntake } from "./feedIntake.ts";
import { extraBlockFieldsOf } from "./pendingHeads.ts";
import { type Passed, type ReconcileOptions, reconcile } from "./reconcile.ts";
import type { TransactionShape } from "./transactionShape.ts";

export interface HeadReconciliationOptions extends ReconcileOptions {
  /** Label of metrics. */
  readonly chain: string;
  readonly feed: FeedIntake;
  readonly folding: ExecutionPipeline;
  readonly shape: Pick<TransactionShape, "hasTimestamp">;
  readonly vanished: Pick<ReturnType<typeof createDroppedTransactions>, "settle">;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

/** Compares each sealed block with what was pending, and moves the base of what is executed. */
export class HeadReconciliation {
  readonly #options: HeadReconciliationOptions;
  /** What heads replaced while an execution of a block below them was awaited; reconciled together. */
  #replaced: RingBlock[] | undefined;

  constructor(options: HeadReconciliationOptions) {
    this.#options = options;
  }

  /** No head waits to be reconciled: what the feed brings can be executed. */
  get isSettled(): boolean {
    return this.#replaced === undefined;
  }

  add(replaced: readonly RingBlock[]): void {
    this.#replaced = [...(this.#replaced ?? []), ...replaced];
  }

  /** Does nothing while an execution at or below the head is awaited. */
  settle(head: Heads): void {
    const { folding, feed, shape, chain, telemetry } = this.#options;
    const replaced = this.#replaced;
    if (!replaced || folding.awaits(head.latest.number)) return;
    this.#replaced = undefined;
    const folded = folding.chain();
    if (folded.base.hash === head.latest.hash) return;
    const { name, passed, isExecuted } = reconcile(folded, { heads: head, from: replaced, to: [] }, this.#options);
    if (name === "reorganised") {
      telemetry.log.warn({ chain, head: head.latest.number }, "pending blocks were orphaned");
    }
    // Where transactions differ, the sealed block's are asked for first.
    for (const each of passed) if (!each.differences.includes("transactions")) this.countDifferences(each);
    feed.confirm(passed);
    folding.rebase(head.latest, isExecuted, {
      ...extraBlockFieldsOf(head),
      hasTransactionTimestamp: shape.hasTimestamp,
    });
    folding.follow(feed.blocks);
    this.#findVanished(head, passed);
  }

  countDifferences({ differences }: Passed): void {
    const { chain, telemetry } = this.#options;
    for (const what of differences) telemetry.metrics.pendingMismatches.inc({ chain, what });
  }

  #findVanished(head: Heads, passed: readonly Passed[]): void {
    const { chain, vanished, telemetry } = this.#options;
    vanished.settle(head, passed).catch((err: unknown) => {
      telemetry.log.debug({ chain, err }, "sealed block not compared");
    });
  }
}
