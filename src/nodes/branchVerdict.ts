import type { RetentionClass } from "../core/rpcSource.ts";
import type { BlockPresence } from "./blockPresence.ts";

/** The known facts about a response that was requested by number, or without a block. */
export interface BranchFacts {
  readonly retention: RetentionClass;
  /** Whether the node has the anchor block before and after the response; undefined if that was not read. */
  readonly presence: BlockPresence | undefined;
  /** Whether the response's block hash is the view's; undefined if the response has none. */
  readonly matchesView: boolean | undefined;
  /** The response is empty although the object must exist. */
  readonly isMissing: boolean;
}

/**
 * `verified`: the response belongs to the view's branch. `unverified`: it may belong to another branch.
 * `undecided`: nothing is known against it. `otherBranch`: it must be rejected.
 * `missingBlock`: the node does not have the anchor block (yet).
 */
export type BranchVerdict = "verified" | "unverified" | "undecided" | "otherBranch" | "missingBlock";

/** State is not verified by its block alone: one machine of a node may return the state, and another one the block. */
const VERIFIED_BY_BLOCK: ReadonlySet<RetentionClass> = new Set(["head", "byTransaction"]);

/** Decides whether a response belongs to the view's branch. */
export const judgeBranch = ({ retention, presence, matchesView, isMissing }: BranchFacts): BranchVerdict => {
  if (presence === "replaced" || matchesView === false) return "otherBranch";
  // A node without the finalized block is on a branch that begins below it.
  if (presence === "lacking") return retention === "final" ? "otherBranch" : "missingBlock";
  // A `null` for a transaction is a response of the view's branch. The pool decides whether it can be right.
  if ((isMissing && retention !== "byTransaction") || presence === "unknown") return "unverified";
  const isVerified = matchesView ?? (presence === "held" && VERIFIED_BY_BLOCK.has(retention));
  return isVerified ? "verified" : "undecided";
};
