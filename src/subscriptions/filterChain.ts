import type { Heads, LinkedBlock } from "../core/heads.ts";
import type { BlockRange } from "../core/logRange.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";

/** The canonical chain as far as a filter compares its blocks with it: the block ring, and blocks below it that were read. */
export interface FilterChain extends Pick<Heads, "oldest"> {
  readonly latest: LinkedBlock;
  at(number: bigint): LinkedBlock | undefined;
}

/** Limit of the blocks that one poll reads below the block ring: those of a filter's 5 minutes on a chain of 1 s. */
const MAX_READ_BLOCKS = 300n;

/**
 * Returns the chain with its blocks from a number on. Reads those that it lacks, and checks that each is the parent of the next.
 * Returns undefined if it lacks too many. Throws RpcError if the blocks are not linked, as during a reorganisation.
 */
export const withBlocksFrom = async (
  chain: FilterChain,
  from: bigint,
  read: (range: BlockRange) => Promise<readonly LinkedBlock[]>,
): Promise<FilterChain | undefined> => {
  const { latest, oldest } = chain;
  let above = chain.at(oldest);
  if (above === undefined || oldest - from > MAX_READ_BLOCKS) {
    return undefined;
  }
  const blocks = new Map<bigint, LinkedBlock>();
  for (const block of (await read({ from, to: oldest - 1n })).toReversed()) {
    if (block.number !== above.number - 1n || block.hash !== above.parentHash) {
      break;
    }
    blocks.set(block.number, block);
    above = block;
  }
  if (above.number !== from) {
    throw unavailable("the blocks since the last poll cannot be read now: poll again");
  }
  return { latest, oldest: from, at: (number) => blocks.get(number) ?? chain.at(number) };
};
