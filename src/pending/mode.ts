import type { PendingMode, PendingSource } from "../core/view.ts";
import type { Trust } from "./applyMessage.ts";

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
  if (facts.hasSubSecondBlocks && facts.isFeedStale) {
    return "native";
  }
  return facts.hasFeeds ? "feed" : "node";
};

export interface ServingFacts {
  readonly backend: PendingBackend;
  readonly isFeedStale: boolean;
  /** Pending blocks are known above the head. */
  readonly hasBlocks: boolean;
  /** Of the part of these blocks of which least is known. */
  readonly trust: Trust;
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
  switch (facts.trust) {
    case "executed":
      return serve(facts.isDegraded ? "degraded" : "live", "view");
    case "stated":
      return serve("unverified", "view");
    case "none":
      return serve("unverified", "view", fromNode);
  }
};

/** Decides which source answers at `pending` (docs/headers.md, x-forebay-pending). One source answers each request. Pure. */
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
