import { isNull } from "../core/isNull.ts";
import type { RequestContext, RpcSource } from "../core/rpcSource.ts";
import type { BlockParameter } from "../ethereum/blockParameter.ts";
import type { Hash } from "../ethereum/hex.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { requestAtBlock } from "./blockRead.ts";
import { blockReceipts } from "./eth_getBlockReceipts.ts";
import { resolveBlock } from "./resolveBlock.ts";

const BLOCK = 0;

/** The receipts of a block through the cache; undefined where no node gives them. */
export const receiptsOf =
  (reads: RpcSource) =>
  async (
    { number, hash }: { readonly number: bigint; readonly hash?: Hash },
    context: RequestContext,
  ): Promise<Uint8Array | undefined> => {
    const parameter: BlockParameter = hash === undefined ? { number } : { hash, requireCanonical: false };
    const input = { entry: blockReceipts, values: [hash ?? formatQuantity(number)], position: BLOCK, parameter };
    const question = requestAtBlock(input, resolveBlock(parameter, context.view.heads));
    try {
      const answer = await reads.request(question, context);
      return answer.body instanceof Uint8Array && !isNull(answer) ? answer.body : undefined;
    } catch {
      context.signal.throwIfAborted();
      return undefined;
    }
  };
