import type { RingBlock } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { SealedBlock } from "../nodes/blockReads.ts";
import { readBlock, readBlockByHash } from "../nodes/blockReads.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { BlockRing } from "./blockRing.ts";

/** The blocks up to a new head, in ascending order. `joined`: the parent of the first one is in the ring. */
export interface ChainPath {
  readonly blocks: readonly SealedBlock[];
  readonly joined: boolean;
  /** The ring that the blocks join, if it is not the served one. */
  readonly onto?: BlockRing;
  /** Enough origins have the head. */
  readonly isAgreed?: boolean;
  /** The new genesis block, if the chain was reset. */
  readonly genesis?: Hash;
}

/** Reads linked blocks in descending order. The block at `to` must have the hash `top`. */
export type ReadLinked = (range: { from: bigint; to: bigint }, top: Hash) => Promise<readonly SealedBlock[]>;

/** If a head is further above the ring, the ring is replaced. With 200 ms blocks, these are more than the 5 minutes of a filter. */
export const MAX_GAP_BLOCKS = 2048n;
const MAX_STEP_BLOCKS = 256n;
const FIRST_STEP_BLOCKS = 8n;

/** The next blocks to read below `low`: larger steps in the gap above the ring, doubled steps inside the ring. */
const nextRange = (ring: BlockRing, low: RingBlock, step: bigint): { readonly from: bigint; readonly to: bigint } => {
  const to = low.number - 1n;
  const isInGap = to > ring.latest.number;
  const floor = isInGap ? ring.latest.number + 1n : ring.oldest;
  const from = to - (isInGap ? MAX_STEP_BLOCKS : step) + 1n;
  return { from: from > floor ? from : floor, to };
};

const isJoined = (ring: BlockRing, { number, parentHash }: RingBlock): boolean =>
  ring.at(number - 1n)?.hash === parentHash;

/** A ring of the head and its parent replaces one that is too far below. */
const replacingPath = async (head: SealedBlock, readLinked: ReadLinked): Promise<ChainPath | undefined> => {
  const to = head.block.number - 1n;
  const parents = await readLinked({ from: to, to }, head.block.parentHash);
  return parents.length === 0 ? undefined : { blocks: [...parents, head], joined: false };
};

/** Finds the blocks between the ring and `head`. Returns undefined if the node's blocks are not linked: try again later. */
export const findChainPath = async (
  ring: BlockRing,
  head: SealedBlock,
  readLinked: ReadLinked,
): Promise<ChainPath | undefined> => {
  if (head.block.number - ring.latest.number > MAX_GAP_BLOCKS) {
    return replacingPath(head, readLinked);
  }
  const descending = [head];
  let low = head.block;
  let step = FIRST_STEP_BLOCKS;
  while (!isJoined(ring, low)) {
    if (low.number <= ring.oldest) {
      return { blocks: descending.reverse(), joined: false };
    }
    const range = nextRange(ring, low, step);
    const blocks = await readLinked(range, low.parentHash);
    if (blocks.length === 0) {
      return undefined;
    }
    for (const block of blocks) {
      descending.push(block);
      low = block.block;
      if (isJoined(ring, low)) {
        break;
      }
    }
    if (range.to <= ring.latest.number && step < MAX_STEP_BLOCKS) {
      step *= 2n;
    }
  }
  return { blocks: descending.reverse(), joined: true };
};

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
