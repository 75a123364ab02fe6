import type { BlockId, RingBlock } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";
import { readBlock, type SealedBlock } from "../nodes/blockReads.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { BlockRing } from "./blockRing.ts";

/** The blocks up to a new head, in ascending order. `joined`: the parent of the first one is in the ring. */
export interface ChainPath {
  readonly blocks: readonly SealedBlock[];
  readonly joined: boolean;
  /** A majority of several origins has the head. */
  readonly isAgreed?: boolean;
  /** The new genesis block, if the chain was reset. */
  readonly genesis?: Hash | undefined;
}

/** Reads linked blocks in descending order. The block at `to` must have the hash `top`. */
export type ReadLinked = (range: { from: bigint; to: bigint }, top: Hash) => Promise<readonly SealedBlock[]>;

/** Rule 6. If a head is further above the ring, the ring is replaced. With 200 ms blocks, these are more than the 5 minutes of a filter. */
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

/** Reads the blocks between the ring and `head`. Returns them in ascending order; undefined if they do not link to the ring. */
export const readPath = async (
  ring: BlockRing,
  head: SealedBlock,
  readLinked: ReadLinked,
): Promise<readonly SealedBlock[] | undefined> => {
  const descending = [head];
  let low = head.block;
  let step = FIRST_STEP_BLOCKS;
  while (!isJoined(ring, low)) {
    if (low.number <= ring.oldest) {
      return undefined;
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
  return descending.reverse();
};

/** Whether the node has this block; undefined if it does not answer. */
export const hasBlock = async (
  node: UpstreamNode,
  { number, hash }: BlockId,
  signal: AbortSignal,
): Promise<boolean | undefined> =>
  readBlock(node, number, signal).then(
    (block) => block?.block.hash === hash,
    () => undefined,
  );
