import type { BlockId, Heads } from "../core/heads.ts";
import type { RetentionClass, RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import { isQuantity } from "../ethereum/hex.ts";
import { isEmpty } from "../verification/responseBlock.ts";
import type { NodeHealth } from "./upstreamNode.ts";

/** What is true of one block above the finalized head, or of one head. */
const OF_ONE_BLOCK: ReadonlySet<RetentionClass> = new Set(["recent", "recentState", "head"]);

/** The newest block that the node told is not the view's at that number. */
const hasLeft = ({ head, headHash }: Pick<NodeHealth, "head" | "headHash">, heads: Heads): boolean => {
  const held = head === undefined ? undefined : heads.at(head);
  return held !== undefined && headHash !== undefined && held.hash !== headHash;
};

/**
 * The block that must be the node's before and after it answers, where the answer itself tells none: the one that was asked
 * for by its number, or the view's newest one where a transaction is said to be in no block. Of what is final, the finalized
 * block where the node is on another branch, which may have begun below it.
 */
export const anchorBlock = (node: NodeHealth, { retention, block }: RpcRequest, heads: Heads): BlockId | undefined => {
  if (retention === "final") return hasLeft(node, heads) ? heads.finalized : undefined;
  if (retention === "byTransaction") return heads.latest;
  return OF_ONE_BLOCK.has(retention) && hasHash(block) ? block : undefined;
};

const hasHash = (block: RpcRequest["block"]): block is BlockId => block?.hash !== undefined;

/** Whether the answer is the right block's by its own words: undefined where it tells none, or none is expected. */
export const matchesView = (
  { retention, block }: RpcRequest,
  { block: told }: RpcResponse,
  heads: Heads,
): boolean | undefined => {
  const expected = retention === "byTransaction" ? told && heads.at(told.number)?.hash : block?.hash;
  return told === undefined || expected === undefined ? undefined : told.hash === expected;
};

/** No receipts of a block that used gas: the node has its header, and not yet what was done in it. */
export const lacksReceipts = (body: Uint8Array, { blockField, block }: RpcRequest, heads: Heads): boolean => {
  if (blockField !== "firstBlockHash" || block === undefined || !isEmpty(body)) return false;
  const gasUsed = heads.header(block.number)?.gasUsed;
  return isQuantity(gasUsed) && BigInt(gasUsed) > 0n;
};
