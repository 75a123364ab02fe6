import { readBlock, readBlockByHash } from "../nodes/blockReads.ts";
import type { SealedBlock } from "../nodes/sealedBlock.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { BlockRing } from "./blockRing.ts";

/** A deeper reorganisation below the ring is served without its lowest blocks. */
const MAX_BLOCKS = 64;

/**
 * Reads the blocks below the ring's oldest block that a reorganisation replaced, and the last common block, in ascending order.
 * Nodes return replaced blocks by hash. Returns none if the node has lost one of them, or if the branch is too long.
 */
export const readReplacedBlocks = async (
  node: UpstreamNode,
  ring: BlockRing,
  signal: AbortSignal,
): Promise<readonly SealedBlock[]> => {
  const descending: SealedBlock[] = [];
  let above = ring.at(ring.oldest);
  while (above !== undefined && above.number > 0n && descending.length < MAX_BLOCKS) {
    const [replaced, canonical] = await Promise.all([
      readBlockByHash(node, above.parentHash, signal),
      readBlock(node, above.number - 1n, signal),
    ]);
    if (replaced?.block.hash !== above.parentHash || replaced.block.number !== above.number - 1n) {
      return [];
    }
    descending.push(replaced);
    if (replaced.block.hash === canonical?.block.hash) {
      return descending.reverse();
    }
    above = replaced.block;
  }
  return [];
};
