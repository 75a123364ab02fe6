import type { Heads } from "../core/heads.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { isAbsent } from "../verification/jsonFields.ts";
import type { BlockPart, PendingBlockState, Trust } from "./applyMessage.ts";
import type { UnverifiedReason } from "./execution.ts";
import type { FeedIntake } from "./feedIntake.ts";
import type { HeadSource } from "./headReconciliation.ts";
import { decideBackend, decideServing, type PendingBackend, type Serving } from "./mode.ts";

interface ServingDecisionOptions {
  /** Label of metrics. */
  readonly chain: string;
  readonly mode: "auto" | PendingBackend;
  readonly hasFeeds: boolean;
  readonly feed: FeedIntake;
  readonly heads: Pick<HeadSource, "setNative">;
  /** Whether the node builds a pending block above the head. */
  readonly nodeBuildsPending: () => boolean;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

/** Decides for each view which source answers at `pending`. Logs and counts changes. */
export class ServingDecision {
  readonly #options: ServingDecisionOptions;
  #backend: PendingBackend | undefined;
  #isUnverified = false;
  /** The newest cause in the log. */
  #toldCause: UnverifiedReason | undefined;

  constructor(options: ServingDecisionOptions) {
    this.#options = options;
  }

  get backend(): PendingBackend | undefined {
    return this.#backend;
  }

  /** `blocks` are the pending blocks above the head. `isCut`: they end before a wrong message. */
  decide(head: Heads, blocks: readonly PendingBlockState[], isCut: boolean): Serving {
    const { feed, nodeBuildsPending } = this.#options;
    const parts = blocks.flatMap((block) => block.parts);
    const failure = parts.find(({ trust }) => trust !== "executed");
    const serving = decideServing({
      backend: this.#chooseBackend(head),
      isFeedStale: feed.isStale,
      hasBlocks: blocks.length > 0,
      trust: weakestOf(parts),
      isDegraded: feed.isDegraded || isCut,
      nodeBuildsPending: nodeBuildsPending(),
    });
    this.#countUnverified(serving, failure?.unverified ?? "failed");
    return serving;
  }

  #chooseBackend(head: Heads): PendingBackend {
    const { chain, mode, hasFeeds, feed, heads, telemetry } = this.#options;
    const next = decideBackend(this.#backend, {
      configured: mode,
      hasFeeds,
      isFeedStale: feed.isStale,
      hasSubSecondBlocks: hasSubSecondBlocks(head),
    });
    if (next !== this.#backend) {
      telemetry.log.info({ chain, backend: next }, "pending backend selected");
      heads.setNative(next === "native");
    }
    this.#backend = next;
    return next;
  }

  #countUnverified({ mode }: Serving, cause: UnverifiedReason): void {
    const { chain, telemetry } = this.#options;
    const isUnverified = mode === "unverified";
    if (isUnverified && !this.#isUnverified) {
      telemetry.metrics.pendingUnverified.inc({ chain, cause });
      // A chain that cannot be executed is unverified again in each block.
      if (cause !== this.#toldCause && cause !== "unexecutable") {
        telemetry.log.warn({ chain, cause }, "pending state is not verified: the node answers state reads");
      }
      this.#toldCause = cause;
    }
    this.#isUnverified = isUnverified;
  }
}

/** From the weakest on. */
const TRUSTS: readonly Trust[] = ["none", "stated"];

const weakestOf = (parts: readonly BlockPart[]): Trust =>
  TRUSTS.find((trust) => parts.some((part) => part.trust === trust)) ?? "executed";

const FAST_SPAN_BLOCKS = 10n;
/** Ten blocks of 200 ms share two or three whole seconds; ten blocks of 1 s do not. */
const FAST_SPAN_SECONDS = 3n;

/**
 * Whether the chain seals several blocks a second, or has timestamps in milliseconds
 * (docs/reference/flashblocks.md, Sub-second blocks).
 */
const hasSubSecondBlocks = (heads: Heads): boolean => {
  if (!isAbsent(heads.header(heads.latest.number)?.timestampMs)) {
    return true;
  }
  const earlier = heads.at(heads.latest.number - FAST_SPAN_BLOCKS);
  return earlier !== undefined && heads.latest.timestamp - earlier.timestamp <= FAST_SPAN_SECONDS;
};
