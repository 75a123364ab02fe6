import type { LinkedBlock } from "../core/heads.ts";
import { isAborted } from "../core/lazySignal.ts";
import type { BlockRange } from "../core/logRange.ts";
import type { RequestContext, RpcSource } from "../core/rpcSource.ts";
import { formatQuantity, isHash } from "../ethereum/hex.ts";
import { asText } from "../json/asText.ts";
import { isFields } from "../json/fields.ts";
import { blockByNumber } from "./eth_getBlockByNumber.ts";
import { requestAtBlock, withCanonicalParams } from "./requestAtBlock.ts";
import { resolveBlock } from "./resolveBlock.ts";

const BLOCK = 0;

/**
 * Creates the function that reads sealed blocks by number, oldest first. They share HTTP requests. Blocks that no node has are
 * left out, and those that cannot be read now. A node on another branch may return other blocks than the canonical ones.
 */
export const blocksByNumber =
  (reads: RpcSource) =>
  async ({ from, to }: BlockRange, context: RequestContext): Promise<readonly LinkedBlock[]> => {
    const readBlock = async (number: bigint): Promise<readonly LinkedBlock[]> => {
      const parameter = { number };
      const values = [formatQuantity(number), false];
      const read = withCanonicalParams({ spec: blockByNumber, values, position: BLOCK, parameter });
      const { body } = await reads.request(requestAtBlock(read, resolveBlock(parameter, context.view.heads)), context);
      const block: unknown = body instanceof Uint8Array ? JSON.parse(asText(body)) : null;
      return isFields(block) && isHash(block.hash) && isHash(block.parentHash)
        ? [{ number, hash: block.hash, parentHash: block.parentHash }]
        : [];
    };
    const numbers = Array.from({ length: Number(to - from) + 1 }, (_, index) => from + BigInt(index));
    const read = await Promise.allSettled(numbers.map(readBlock));
    if (isAborted(context)) {
      context.signal.throwIfAborted();
    }
    return read.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
  };
