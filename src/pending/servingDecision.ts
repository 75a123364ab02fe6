import type { Heads } from "../core/heads.ts";
import type { PendingMode, PendingSource } from "../core/view.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { isAbsent } from "../verification/jsonFields.ts";
import type { PendingBlockState } from "./applyMessage.ts";
import type { UnverifiedReason } from "./executableMessage.ts";
import type { FeedIntake } from "./feedIntake.ts";
import type { HeadSource } from "./headReconciliation.ts";

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
    const failure = blocks.flatMap(({ parts }) => parts).find(({ changes }) => changes === undefined);
    const serving = decideServing({
      backend: this.#chooseBackend(head),
      isFeedStale: feed.isStale,
      hasBlocks: blocks.length > 0,
      isExecuted: failure === undefined,
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
      // The headers are read only if the feed is stale.
      get hasSubSecondBlocks() {
        return hasSubSecondBlocks(head);
      },
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

/** The configured or detected source of pending blocks. */
export type PendingBackend = "feed" | "native" | "node";

export interface BackendFacts {
  readonly configured: "auto" | PendingBackend;
  readonly hasFeeds: boolean;
  /** A message of the feed is overdue: see FeedIntake. */
  readonly isFeedStale: boolean;
  /** The chain seals several blocks a second. */
  readonly hasSubSecondBlocks: boolean;
}

/**
 * Chooses the backend (docs/reference/flashblocks.md, Choosing a backend). The configuration has priority.
 * A chain with sub-second blocks needs no feed, and does not change back. Pure.
 */
export const decideBackend = (current: PendingBackend | undefined, facts: BackendFacts): PendingBackend => {
  if (facts.configured !== "auto") {
    return facts.configured;
  }
  if (current === "native") {
    return "native";
  }
  if (facts.isFeedStale && facts.hasSubSecondBlocks) {
    return "native";
  }
  return facts.hasFeeds ? "feed" : "node";
};

export interface ServingFacts {
  readonly backend: PendingBackend;
  readonly isFeedStale: boolean;
  /** Pending blocks are known above the head. */
  readonly hasBlocks: boolean;
  /** All of these blocks are verified. */
  readonly isExecuted: boolean;
  /** Messages after the known blocks are missing. */
  readonly isDegraded: boolean;
  /** The node builds a pending block above the head. */
  readonly nodeBuildsPending: boolean;
}

export interface Serving {
  readonly mode: PendingMode;
  readonly blocksFrom: PendingSource;
  readonly stateFrom: PendingSource;
}

const serve = (mode: PendingMode, blocksFrom: PendingSource, stateFrom = blocksFrom): Serving => ({
  mode,
  blocksFrom,
  stateFrom,
});

const serveFromFeed = (facts: ServingFacts, fromNode: PendingSource): Serving => {
  if (facts.isFeedStale) {
    return serve("stale", fromNode);
  }
  if (!facts.hasBlocks) {
    // The short time between a sealed block and the first message of the next one.
    return serve(facts.isDegraded ? "degraded" : "live", "latest");
  }
  return facts.isExecuted
    ? serve(facts.isDegraded ? "degraded" : "live", "view")
    : serve("unverified", "view", fromNode);
};

/** Decides which source answers at `pending` (docs/answers.md, x-forebay-pending). One source answers each request. Pure. */
export const decideServing = (facts: ServingFacts): Serving => {
  const fromNode = facts.nodeBuildsPending ? "node" : "latest";
  switch (facts.backend) {
    case "native":
      return serve("native", "latest");
    case "node":
      return serve(facts.nodeBuildsPending ? "node" : "none", fromNode);
    case "feed":
      return serveFromFeed(facts, fromNode);
  }
};

/** Whether the source depends on whether the node builds a pending block. */
export const needsNode = (mode: PendingMode): boolean =>
  mode === "node" || mode === "none" || mode === "stale" || mode === "unverified";
