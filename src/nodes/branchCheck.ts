import type { BlockId, Heads } from "../core/heads.ts";
import { RETENTION } from "../core/retention.ts";
import type { RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import { isQuantity } from "../ethereum/hex.ts";
import { isEmpty } from "../verification/responseBlock.ts";
import type { NodeHealth } from "./upstreamNode.ts";

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
  switch (RETENTION[retention].branchAnchor) {
    case "finalized":
      return isOnOtherBranch(node, heads) ? heads.finalized : undefined;
    case "latest":
      return heads.latest;
    case "requested":
      return hasHash(block) ? block : undefined;
    case undefined:
      return undefined;
  }
};

const hasHash = (block: RpcRequest["block"]): block is BlockId => block?.hash !== undefined;

/** Whether the response's block hash matches the request; `undefined` if it has none, or if the request expects none. */
export const matchesView = (
  { retention, block }: RpcRequest,
  { block: answered }: RpcResponse,
  heads: Heads,
): boolean | undefined => {
  if (answered === undefined) {
    return undefined;
  }
  const expected = RETENTION[retention].blockFrom === "response" ? heads.at(answered.number)?.hash : block?.hash;
  return expected === undefined ? undefined : answered.hash === expected;
};

/** Whether a node returned no receipts for a block that used gas: it has the header, but not yet the receipts. */
export const lacksReceipts = (body: Uint8Array, { blockField, block }: RpcRequest, heads: Heads): boolean => {
  if (blockField !== "firstBlockHash" || block === undefined || !isEmpty(body)) {
    return false;
  }
  const gasUsed = heads.header(block.number)?.gasUsed;
  return isQuantity(gasUsed) && BigInt(gasUsed) > 0n;
};
