import type { BlockId } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { SealedBlock } from "../nodes/sealedBlock.ts";
import type { BlockRing } from "./blockRing.ts";

/** One node's newest blocks, as far as the ring does not have them. */
export interface NodeChain {
  /** The parent of the first of `blocks`, in the ring. Without `blocks`, it is the node's head. */
  readonly base: BlockId;
  /** Ascending and linked. */
  readonly blocks: readonly SealedBlock[];
}

const isInRing = (ring: BlockRing, { number, hash }: BlockId): boolean => ring.at(number)?.hash === hash;

export const headOf = ({ base, blocks }: NodeChain): BlockId => blocks.at(-1)?.block ?? base;

/** Returns the hash of the node's block at a number; undefined if it is above the node's head or unknown. */
export const hashAt = ({ base, blocks }: NodeChain, number: bigint, ring: BlockRing): Hash | undefined =>
  number > base.number
    ? blocks[Number(number - base.number) - 1]?.block.hash
    : isInRing(ring, base)
      ? ring.at(number)?.hash
      : undefined;

/** Returns a ring's block with its header; nothing if the ring does not have it. */
export const sealedBlocksOf = (ring: BlockRing, number: bigint): SealedBlock[] => {
  const block = ring.at(number);
  return block === undefined ? [] : [{ block, header: ring.header(number) }];
};

/**
 * Returns the chain after `ring` replaced `before`: without the blocks that the ring has now, and with those that it had.
 * Returns undefined if the two rings have no common block below the chain.
 */
export const rejoin = (chain: NodeChain, before: BlockRing, ring: BlockRing): NodeChain | undefined => {
  const replaced: SealedBlock[] = [];
  let { base } = chain;
  while (!isInRing(ring, base)) {
    const block = before.at(base.number);
    const parent = before.at(base.number - 1n);
    if (block?.hash !== base.hash || parent === undefined) {
      return undefined;
    }
    replaced.unshift({ block, header: before.header(base.number) });
    base = parent;
  }
  const blocks = [...replaced, ...chain.blocks];
  const first = blocks.findIndex(({ block }) => !isInRing(ring, block));
  const added = first === -1 ? blocks.length : first;
  const { number, hash } = blocks[added - 1]?.block ?? base;
  return { base: { number, hash }, blocks: blocks.slice(added) };
};

/** Finds a block by its hash, among blocks whose hash commits to their parent. */
export type FindBlock = (hash: Hash) => SealedBlock | undefined;

/** Links a head to the ring by blocks that are known. Returns the lowest linked block's chain; undefined if a block is missing. */
export const linkHead = (head: SealedBlock, ring: BlockRing, find: FindBlock): NodeChain | undefined => {
  const descending = [head];
  for (let low: SealedBlock = head; ; ) {
    const { number, parentHash } = low.block;
    const base = { number: number - 1n, hash: parentHash };
    if (isInRing(ring, base)) {
      return { base, blocks: descending.reverse() };
    }
    const parent = find(parentHash);
    if (parent?.block.number !== base.number || base.number <= ring.oldest) {
      return undefined;
    }
    descending.push(parent);
    low = parent;
  }
};
