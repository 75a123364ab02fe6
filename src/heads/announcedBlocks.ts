import type { Hash } from "../ethereum/hex.ts";
import type { SealedBlock } from "../nodes/sealedBlock.ts";
import { hasHeaderHash, hasOwnHash, isSameHeader } from "../verification/checkHeader.ts";
import type { BlockRing } from "./blockRing.ts";
import type { NodeChain } from "./nodeChain.ts";

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
