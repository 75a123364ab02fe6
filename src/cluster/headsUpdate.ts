import type { BlockId, HeadChange, Heads, RingBlock } from "../core/heads.ts";
import { type BlockRing, createBlockRing } from "../heads/blockRing.ts";
import type { SealedBlock } from "../nodes/blockReads.ts";

/** The difference between two Heads as plain data. */
export interface HeadsUpdate {
  /** `top` replaces the whole ring. */
  readonly isWhole: boolean;
  /** Blocks from the fork to the newest, ascending. At least one. */
  readonly top: readonly SealedBlock[];
  /** Blocks below the oldest of before, ascending. */
  readonly bottom: readonly SealedBlock[];
  readonly isAgreed: boolean;
  readonly safe: BlockId | undefined;
  readonly finalized: BlockId | undefined;
  /** The same as in HeadChange. */
  readonly from: readonly RingBlock[];
  readonly to: readonly RingBlock[];
}

const blockAt = (heads: Heads, number: bigint): SealedBlock => {
  const block = heads.at(number);
  if (block === undefined) {
    throw new Error(`the block ring lacks block ${number}`);
  }
  return { block, header: heads.header(number) };
};

/** Reads a number that the ring has. `Heads.at` would request a lower one from the nodes. */
const hashAt = (heads: Heads, number: bigint): string | undefined =>
  number < heads.oldest ? undefined : heads.at(number)?.hash;

const range = (heads: Heads, from: bigint, to: bigint): SealedBlock[] => {
  const blocks: SealedBlock[] = [];
  for (let number = from; number <= to; number++) {
    blocks.push(blockAt(heads, number));
  }
  return blocks;
};

/** Compares the Heads of a change with those of before. Without `before`, the update has the whole ring. */
export const diffHeads = (before: Heads | undefined, { heads: after, from, to }: HeadChange): HeadsUpdate => {
  const { latest, oldest, isAgreed, safe, finalized } = after;
  const rest = { isAgreed, safe, finalized, from, to };
  if (before === undefined) {
    return { isWhole: true, top: range(after, oldest, latest.number), bottom: [], ...rest };
  }
  // The newest block is always sent: it is the end of the ring.
  let lowest = latest.number;
  while (lowest > oldest && hashAt(before, lowest - 1n) !== hashAt(after, lowest - 1n)) {
    lowest--;
  }
  const isWhole = lowest === oldest && before.oldest !== oldest;
  const hasBottom = !isWhole && oldest < before.oldest;
  return {
    isWhole,
    top: range(after, lowest, latest.number),
    bottom: hasBottom ? range(after, oldest, before.oldest - 1n) : [],
    ...rest,
  };
};

/** The bloom of a received block is a part of the whole message, which the ring must not retain. */
const withOwnBloom = ({ block, header }: SealedBlock): SealedBlock => ({
  block: { ...block, logsBloom: new Uint8Array(block.logsBloom) },
  header,
});

/** Returns the ring after an update. */
export const updateRing = (ring: BlockRing | undefined, { isWhole, top, bottom }: HeadsUpdate): BlockRing => {
  const added = top.map(withOwnBloom);
  const next = isWhole || ring === undefined ? createBlockRing(added) : ring.withTop(added);
  return bottom.length === 0 ? next : next.withBottom(bottom.map(withOwnBloom));
};

/** Creates the Heads of a ring. `onMissing` gets the numbers that are read below the ring. */
export const headsOfRing = (
  ring: BlockRing,
  { isAgreed, safe, finalized }: Pick<HeadsUpdate, "isAgreed" | "safe" | "finalized">,
  onMissing: (number: bigint) => void,
): Heads => {
  const { latest, oldest, header } = ring;
  const at = (number: bigint): RingBlock | undefined => {
    const block = ring.at(number);
    if (block === undefined && number < oldest) {
      onMissing(number);
    }
    return block;
  };
  return { latest, isAgreed, oldest, safe, finalized, at, header };
};
