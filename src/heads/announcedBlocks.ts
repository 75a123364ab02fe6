import { type BlockId, isCanonicalIn } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { SealedBlock } from "../nodes/blockReads.ts";
import { hasHeaderHash, hasOwnHash, isSameHeader } from "../verification/checkHeader.ts";
import type { BlockRing } from "./blockRing.ts";

/** One node's newest blocks, as far as the ring does not have them. */
export interface NodeChain {
  /** The parent of the first of `blocks`, in the ring. Without `blocks`, it is the node's head. */
  readonly base: BlockId;
  /** Ascending and linked. */
  readonly blocks: readonly SealedBlock[];
}

export const headOf = ({ base, blocks }: NodeChain): BlockId => blocks.at(-1)?.block ?? base;

/** Returns the hash of the node's block at a number; undefined if it is above the node's head or unknown. */
export const hashAt = ({ base, blocks }: NodeChain, number: bigint, ring: BlockRing): Hash | undefined =>
  number > base.number
    ? blocks[Number(number - base.number) - 1]?.block.hash
    : isCanonicalIn(ring, base)
      ? ring.at(number)?.hash
      : undefined;

/** Whether a node's chain has a block. */
export const isOnChain = (chain: NodeChain, { number, hash }: BlockId, ring: BlockRing): boolean =>
  hashAt(chain, number, ring) === hash;

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
  while (!isCanonicalIn(ring, base)) {
    const block = before.at(base.number);
    const parent = before.at(base.number - 1n);
    if (block?.hash !== base.hash || parent === undefined) {
      return undefined;
    }
    replaced.unshift({ block, header: before.header(base.number) });
    base = parent;
  }
  const blocks = [...replaced, ...chain.blocks];
  const first = blocks.findIndex(({ block }) => !isCanonicalIn(ring, block));
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
    if (isCanonicalIn(ring, base)) {
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

interface AnnouncedBlock {
  readonly seenMs: number;
  /** Of several copies the one whose hash is that of its header. If there is none, the first. */
  copy: SealedBlock;
}

/** Whether the hash of a block was computed, so that it commits to all fields of the header. */
const isTrueCopy = ({ header }: SealedBlock): boolean => header !== undefined && hasHeaderHash(header);

/** Of copies of one block, returns one whose hash is that of its header, else the first. */
export const trueCopyOf = (first: SealedBlock, others: readonly SealedBlock[]): SealedBlock => {
  const { header } = first;
  const different = others.filter(
    (other) => header !== undefined && other.header !== undefined && !isSameHeader(header, other.header),
  );
  return different.length === 0 || isTrueCopy(first) ? first : (different.find(isTrueCopy) ?? first);
};

/**
 * Returns the blocks down to the first one with another hash than that of its header. If the ring's newest hash cannot be
 * computed, forebay does not know the encoding of this chain's headers.
 */
export const untilWrong = (blocks: readonly SealedBlock[], ring: BlockRing): readonly SealedBlock[] => {
  const newest = ring.header(ring.latest.number);
  if (newest === undefined || !hasHeaderHash(newest)) {
    return blocks;
  }
  const wrong = blocks.findIndex(({ header }) => header !== undefined && !hasOwnHash(header));
  return wrong === -1 ? blocks : blocks.slice(0, wrong);
};

/** The blocks above the ring that nodes have announced. Copies of one block may differ: a node may state a wrong header. */
export class AnnouncedBlocks {
  #blocks = new Map<Hash, AnnouncedBlock>();

  /** Returns the time when a block was first announced. */
  seenMs(hash: Hash): number | undefined {
    return this.#blocks.get(hash)?.seenMs;
  }

  /** Returns a block whose hash commits to its parent. */
  find(hash: Hash): SealedBlock | undefined {
    const copy = this.#blocks.get(hash)?.copy;
    return copy !== undefined && isTrueCopy(copy) ? copy : undefined;
  }

  /** Adds the blocks of a chain. Returns whether a known copy of one of them was wrong. */
  add({ blocks }: NodeChain, nowMs: number): boolean {
    let wasWrong = false;
    for (const sealed of blocks) {
      const known = this.#blocks.get(sealed.block.hash);
      if (known === undefined) {
        this.#blocks.set(sealed.block.hash, { seenMs: nowMs, copy: sealed });
      } else if (known.copy !== sealed) {
        const copy = trueCopyOf(known.copy, [sealed]);
        wasWrong ||= copy !== known.copy;
        known.copy = copy;
      }
    }
    return wasWrong;
  }

  /** Returns a chain with the true copies of its blocks. It ends below a block whose true parent is another one. */
  correct({ base, blocks }: NodeChain): NodeChain {
    const copies: SealedBlock[] = [];
    let parent = base.hash;
    for (const sealed of blocks) {
      const copy = trueCopyOf(sealed, [this.#blocks.get(sealed.block.hash)?.copy ?? sealed]);
      if (copy.block.parentHash !== parent || copy.block.number !== sealed.block.number) {
        break;
      }
      copies.push(copy);
      parent = copy.block.hash;
    }
    return { base, blocks: copies };
  }

  /** Forgets the blocks that none of the chains has. */
  keep(chains: readonly NodeChain[]): void {
    const kept = new Map<Hash, AnnouncedBlock>();
    for (const { block } of chains.flatMap(({ blocks }) => blocks)) {
      const known = this.#blocks.get(block.hash);
      if (known !== undefined) {
        kept.set(block.hash, known);
      }
    }
    this.#blocks = kept;
  }
}
