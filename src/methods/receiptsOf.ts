import { isNull } from "../core/isNull.ts";
import type { RequestContext, RpcSource } from "../core/rpcSource.ts";
import type { BlockParameter } from "../ethereum/blockParameter.ts";
import type { Hash } from "../ethereum/hex.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { blockReceipts } from "./eth_getBlockReceipts.ts";
import { requestAtBlock, withCanonicalParams } from "./requestAtBlock.ts";
import { resolveBlock } from "./resolveBlock.ts";

const BLOCK = 0;

/** Creates the function that reads a block's receipts through the cache. It returns undefined if no node has them. */
export const receiptsOf =
  (reads: RpcSource) =>
  async (
    { number, hash }: { readonly number: bigint; readonly hash?: Hash | undefined },
    context: RequestContext,
  ): Promise<Uint8Array | undefined> => {
    const parameter: BlockParameter = hash === undefined ? { number } : { hash, requireCanonical: false };
    const values = [hash ?? formatQuantity(number)];
    const read = withCanonicalParams({ spec: blockReceipts, values, position: BLOCK, parameter });
    const request = requestAtBlock(read, resolveBlock(parameter, context.view.heads));
    try {
      const response = await reads.request(request, context);
      return response.body instanceof Uint8Array && !isNull(response) ? response.body : undefined;
    } catch {
      context.signal.throwIfAborted();
      return undefined;
    }
  };
