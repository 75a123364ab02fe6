import type { BlockId, Heads } from "../core/heads.ts";
import type { Answer, Lifetime, Question } from "../core/source.ts";
import { isQuantity } from "../ethereum/hex.ts";
import { isEmpty } from "../verification/told.ts";
import type { Standing } from "./upstreamNode.ts";

/** What is true of one block above the finalized head, or of one head. */
const OF_ONE_BLOCK: ReadonlySet<Lifetime> = new Set(["recent", "recentState", "head"]);

/** The newest block that the node told is not the view's at that number. */
const hasLeft = ({ head, headHash }: Pick<Standing, "head" | "headHash">, heads: Heads): boolean => {
  const held = head === undefined ? undefined : heads.at(head);
  return held !== undefined && headHash !== undefined && held.hash !== headHash;
};

/**
 * The block that must be the node's before and after it answers, where the answer itself tells none: the one that was asked
 * for by its number, or the view's newest one where a transaction is said to be in no block. Of what is final, the finalized
 * block where the node is on another branch, which may have begun below it.
 */
export const anchorOf = (node: Standing, { lifetime, block }: Question, heads: Heads): BlockId | undefined => {
  if (lifetime === "final") return hasLeft(node, heads) ? heads.finalized : undefined;
  if (lifetime === "byTransaction") return heads.latest;
  return OF_ONE_BLOCK.has(lifetime) && hasHash(block) ? block : undefined;
};

const hasHash = (block: Question["block"]): block is BlockId => block?.hash !== undefined;

/** Whether the answer is the right block's by its own words: undefined where it tells none, or none is expected. */
export const isOfView = ({ lifetime, block }: Question, { block: told }: Answer, heads: Heads): boolean | undefined => {
  const expected = lifetime === "byTransaction" ? told && heads.at(told.number)?.hash : block?.hash;
  return told === undefined || expected === undefined ? undefined : told.hash === expected;
};

/** No receipts of a block that used gas: the node has its header, and not yet what was done in it. */
export const isSilent = (body: Uint8Array, { tells, block }: Question, heads: Heads): boolean => {
  if (tells !== "firstBlockHash" || block === undefined || !isEmpty(body)) return false;
  const gasUsed = heads.header(block.number)?.gasUsed;
  return isQuantity(gasUsed) && BigInt(gasUsed) > 0n;
};
