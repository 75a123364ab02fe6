import type { BlockId } from "../../core/heads.ts";
import { SlidingSum } from "../../limits/slidingSum.ts";
import type { StateCost } from "../stateCost.ts";
import type { WriteSet, WriteSetFailure, WriteSetSource } from "../writeSet.ts";
import { packChanges } from "./executedWrites.ts";
import type { FeedSource, PartialExecution } from "./feedSource.ts";
import { type BlockContentOptions, readBlockContent, withinScope } from "./readBlockContent.ts";
import { scopeWithin } from "./sourceNodes.ts";

export interface CompletedFeedSourceOptions extends BlockContentOptions {
  readonly feed: Pick<FeedSource, "read" | "partial">;
  readonly cost: Pick<StateCost, "unitsOf" | "shouldFollow" | "spend">;
  readonly blockTimeMs: () => number;
  readonly nowMs: () => number;
}

/** The estimated number of values that the last transactions of a block read from nodes. */
const VALUES_PER_BLOCK = 5;
/** The share of completed blocks is that of this period. */
const PERIOD_MS = 60_000;

/**
 * Write sets of the feed. If a sealed block has other transactions at its end than the feed brought, the block is read, and
 * only these are executed. That costs units, so it must pay.
 */
export class CompletedFeedSource implements WriteSetSource {
  readonly kind = "feed";
  /** Most blocks need no completion. */
  readonly unitsPerBlock = 0;
  readonly #options: CompletedFeedSourceOptions;
  readonly #blocks = new SlidingSum(PERIOD_MS);
  readonly #completed = new SlidingSum(PERIOD_MS);

  constructor(options: CompletedFeedSourceOptions) {
    this.#options = options;
  }

  async read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    const { feed, nowMs } = this.#options;
    this.#blocks.add(1, nowMs());
    const outcome = await feed.read(block, signal);
    const partial = outcome === "incomplete" ? feed.partial(block) : undefined;
    return partial !== undefined && this.#pays() ? this.#complete(partial, signal).catch(() => "error") : outcome;
  }

  /** Whether the reads of clients pay for the completion of as many blocks as in the last period. */
  #pays(): boolean {
    const { cost, nowMs } = this.#options;
    const now = nowMs();
    const share = (this.#completed.total(now) + 1) / Math.max(1, this.#blocks.total(now));
    return cost.shouldFollow(this.#units * Math.min(1, share));
  }

  get #units(): number {
    const { unitsOf } = this.#options.cost;
    return unitsOf("eth_getBlockByHash") + VALUES_PER_BLOCK * unitsOf("eth_getStorageAt");
  }

  async #complete({ block, complete }: PartialExecution, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    const { blockTimeMs, nowMs, cost } = this.#options;
    const scope = scopeWithin(blockTimeMs(), signal);
    this.#completed.add(1, nowMs());
    cost.spend("writeSets", this.#units);
    const content = await readBlockContent(this.#options, block, scope);
    if (typeof content === "string") {
      return content;
    }
    const changes = await withinScope(complete(content), scope);
    return typeof changes === "string" ? changes : { block, packed: packChanges(changes) };
  }
}
