import type { RequestContext, RpcSource } from "../core/rpcSource.ts";
import { type Hash, isHash } from "../ethereum/hex.ts";
import { headerOf } from "./headerOf.ts";

/**
 * Creates the function that reads the parent's hash of a block of any branch. It returns undefined if no node has the block.
 * It throws every other error: a node that is slow or limited may have the block.
 */
export const parentHashOf = (reads: RpcSource) => {
  const readHeader = headerOf(reads);
  return async (hash: Hash, context: RequestContext): Promise<Hash | undefined> => {
    const block = await readHeader(hash, context);
    return isHash(block?.parentHash) ? block.parentHash : undefined;
  };
};
