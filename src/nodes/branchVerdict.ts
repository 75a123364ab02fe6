import { RETENTION, type RetentionClass } from "../core/retention.ts";
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

/** Decides whether a response belongs to the view's branch. */
export const decideBranch = ({ retention, presence, matchesView, isMissing }: BranchFacts): BranchVerdict => {
  const { branchAnchor, boundTo, cachesNull } = RETENTION[retention];
  if (presence === "replaced" || matchesView === false) {
    return "otherBranch";
  }
  // A node without the finalized block is on a branch that begins below it.
  if (presence === "missing") {
    return branchAnchor === "finalized" ? "otherBranch" : "missingBlock";
  }
  // A `null` that can be cached is a response of the view's branch. The pool decides whether it can be right.
  if ((isMissing && !cachesNull) || presence === "unknown") {
    return "unverified";
  }
  // A node may be several machines: the block of one does not verify the state that another one returned.
  const isVerified = matchesView ?? (presence === "present" && boundTo === "view");
  return isVerified ? "verified" : "undecided";
};
