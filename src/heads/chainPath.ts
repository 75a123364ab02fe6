import type { Hash } from "../ethereum/hex.ts";
import type { SealedBlock } from "../nodes/sealedBlock.ts";
import type { BlockRing } from "./blockRing.ts";

/** The blocks that lead to a new head, ascending. `joined`: the first one's parent is in the ring. */
export interface ChainPath {
  readonly blocks: readonly SealedBlock[];
  readonly joined: boolean;
  /** The ring that they join, if it is not the one that is served. */
  readonly onto?: BlockRing;
  /** Set where the chain began anew: its other genesis. */
  readonly genesis?: Hash;
}

/** Reads blocks downwards from the one with the hash `top`. */
export type ReadLinked = (range: { from: bigint; to: bigint }, top: Hash) => Promise<readonly SealedBlock[]>;

/** After a longer silence the ring begins anew. */
const MAX_GAP_BLOCKS = 1024n;
const MAX_STEP_BLOCKS = 256n;
const FIRST_STEP_BLOCKS = 8n;

/** How `head` hangs together with the ring; undefined where the node's blocks do not fit each other (asked again soon). */
export const findChainPath = async (
  ring: BlockRing,
  head: SealedBlock,
  readLinked: ReadLinked,
): Promise<ChainPath | undefined> => {
  const descending = [head];
  let low = head.block;
  let step = FIRST_STEP_BLOCKS;
  const isJoined = (): boolean => ring.at(low.number - 1n)?.hash === low.parentHash;

  if (head.block.number - ring.latest.number > MAX_GAP_BLOCKS) {
    const to = low.number - 1n;
    const read = await readLinked({ from: to, to }, low.parentHash);
    return read.length === 0 ? undefined : { blocks: [...read, head], joined: false };
  }
  while (!isJoined()) {
    const to = low.number - 1n;
    if (to < ring.oldest) {
      return { blocks: descending.reverse(), joined: false };
    }
    const inGap = to > ring.latest.number;
    const floor = inGap ? ring.latest.number + 1n : ring.oldest;
    const size = inGap ? MAX_STEP_BLOCKS : step;
    const from = to - size + 1n > floor ? to - size + 1n : floor;
    const read = await readLinked({ from, to }, low.parentHash);
    if (read.length === 0) {
      return undefined;
    }
    for (const block of read) {
      descending.push(block);
      low = block.block;
      if (isJoined()) {
        break;
      }
    }
    step = inGap || step >= MAX_STEP_BLOCKS ? step : step * 2n;
  }
  return { blocks: descending.reverse(), joined: true };
};
