import type { PendingMode, PendingSource } from "../core/view.ts";

/** Where pending answers come from, on the whole. */
export type Backend = "feed" | "native" | "node";

export interface BackendFacts {
  readonly configured: "auto" | Backend;
  readonly hasFeeds: boolean;
  /** A message extended the view within the deadline. */
  readonly isFeedLive: boolean;
  /** The chain seals several times a second (blockTime). */
  readonly isSealingFast: boolean;
}

/** Configuration wins; a chain that seals fast needs no feed, and once that is seen it stays so (flashblocks.md 7.2). Pure. */
export const decideBackend = (current: Backend | undefined, facts: BackendFacts): Backend => {
  if (facts.configured !== "auto") return facts.configured;
  if (current === "native") return "native";
  if (facts.isSealingFast && !facts.isFeedLive) return "native";
  return facts.hasFeeds ? "feed" : "node";
};

export interface ServingFacts {
  readonly backend: Backend;
  readonly isFeedLive: boolean;
  /** Nothing is known above the head, and the next block's first message is late. */
  readonly isFeedOverdue: boolean;
  /** Pending blocks are known above the head. */
  readonly hasBlocks: boolean;
  /** All of them are executed here, and agree with the feed. */
  readonly isVerified: boolean;
  /** Messages are missing behind what is known. */
  readonly isDegraded: boolean;
  /** The node's own pending block is above the head: it builds one. */
  readonly nodeBuilds: boolean;
}

export interface Serving {
  readonly mode: PendingMode;
  readonly blocksFrom: PendingSource;
  readonly stateFrom: PendingSource;
}

const served = (mode: PendingMode, blocksFrom: PendingSource, stateFrom = blocksFrom): Serving => ({
  mode,
  blocksFrom,
  stateFrom,
});

/** Sealed before the next block began, or before its first message was verified: the sealed block is what is known, for a moment. */
const modeWithoutBlocks = ({ isDegraded, isFeedOverdue }: ServingFacts): PendingMode => {
  if (isDegraded) return "degraded";
  return isFeedOverdue ? "stale" : "live";
};

const serveFromFeed = (facts: ServingFacts, fromNode: PendingSource): Serving => {
  if (!facts.isFeedLive) return served("stale", fromNode);
  if (!facts.hasBlocks) return served(modeWithoutBlocks(facts), "latest");
  if (!facts.isVerified) return served("unverified", "view", fromNode);
  return served(facts.isDegraded ? "degraded" : "live", "view");
};

/** Who answers at pending, never null and never a mix (architecture.md, answers). Pure. */
export const decideServing = (facts: ServingFacts): Serving => {
  const fromNode = facts.nodeBuilds ? "node" : "latest";
  switch (facts.backend) {
    case "native":
      return served("native", "latest");
    case "node":
      return served(facts.nodeBuilds ? "node" : "none", fromNode);
    case "feed":
      return serveFromFeed(facts, fromNode);
  }
};

/** Answers depend on whether the node builds a pending block of its own. */
export const needsNode = (mode: PendingMode): boolean =>
  mode === "node" || mode === "none" || mode === "stale" || mode === "unverified";
