import type { BlockId, Heads } from "../core/heads.ts";
import type { RetentionClass, RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import { isQuantity } from "../ethereum/hex.ts";
import { isEmpty } from "../verification/responseBlock.ts";
import type { NodeHealth } from "./upstreamNode.ts";

/** Retention classes of responses that belong to one block above the finalized head, or to one head. */
const BLOCK_BOUND: ReadonlySet<RetentionClass> = new Set(["recent", "recentState", "head"]);

/** Whether the node's newest block is not the view's block at that number. */
const isOnOtherBranch = ({ head, headHash }: Pick<NodeHealth, "head" | "headHash">, heads: Heads): boolean => {
  const canonical = head === undefined ? undefined : heads.at(head);
  return canonical !== undefined && headHash !== undefined && canonical.hash !== headHash;
};

/**
 * Returns the block that the node must have before and after its response, if the response contains no block hash.
 * For a request by number it is the requested block.
 * For a transaction without a block it is the view's newest block.
 * For a final block it is the finalized block, if the node is on another branch: that branch may begin below it.
 */
export const anchorBlock = (node: NodeHealth, { retention, block }: RpcRequest, heads: Heads): BlockId | undefined => {
  if (retention === "final") return isOnOtherBranch(node, heads) ? heads.finalized : undefined;
  if (retention === "byTransaction") return heads.latest;
  return BLOCK_BOUND.has(retention) && hasHash(block) ? block : undefined;
};

const hasHash = (block: RpcRequest["block"]): block is BlockId => block?.hash !== undefined;

/** Whether the response's block hash matches the request; `undefined` if it has none, or if the request expects none. */
export const matchesView = (
  { retention, block }: RpcRequest,
  { block: answered }: RpcResponse,
  heads: Heads,
): boolean | undefined => {
  const expected = retention === "byTransaction" ? answered && heads.at(answered.number)?.hash : block?.hash;
  return answered === undefined || expected === undefined ? undefined : answered.hash === expected;
};

/** Whether a node returned no receipts for a block that used gas: it has the header, but not yet the receipts. */
export const lacksReceipts = (body: Uint8Array, { blockField, block }: RpcRequest, heads: Heads): boolean => {
  if (blockField !== "firstBlockHash" || block === undefined || !isEmpty(body)) return false;
  const gasUsed = heads.header(block.number)?.gasUsed;
  return isQuantity(gasUsed) && BigInt(gasUsed) > 0n;
};
