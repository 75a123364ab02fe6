import { isNull } from "../core/isNull.ts";
import type { CallContext, Source } from "../core/source.ts";
import type { BlockParameter } from "../ethereum/blockParameter.ts";
import type { Hash } from "../ethereum/hex.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { questionAt } from "./blockReads.ts";
import { blockReceipts } from "./eth_getBlockReceipts.ts";
import { resolveBlock } from "./resolveBlock.ts";

const BLOCK = 0;

/** The receipts of a block through the cache; undefined where no node gives them. */
export const receiptsOf =
  (reads: Source) =>
  async (
    { number, hash }: { readonly number: bigint; readonly hash?: Hash },
    context: CallContext,
  ): Promise<Uint8Array | undefined> => {
    const parameter: BlockParameter = hash === undefined ? { number } : { hash, requireCanonical: false };
    const input = { entry: blockReceipts, values: [hash ?? formatQuantity(number)], position: BLOCK, parameter };
    const question = questionAt(input, resolveBlock(parameter, context.view.heads));
    try {
      const answer = await reads.request(question, context);
      return answer.body instanceof Uint8Array && !isNull(answer) ? answer.body : undefined;
    } catch {
      context.signal.throwIfAborted();
      return undefined;
    }
  };
