import type { BlockId, HeadChange, Heads, RingBlock } from "../core/heads.ts";
import type { SealedBlock } from "../nodes/blockReads.ts";
import { sealedBlocksOf } from "./announcedBlocks.ts";
import { type BlockRing, createBlockRing, RING_BLOCKS } from "./blockRing.ts";
import type { ChainPath } from "./chainPath.ts";

export interface Finality {
  /** Blocks below latest that count as final. Undefined: the tags of the nodes. */
  readonly depth?: number | undefined;
}

interface Tags {
  readonly safe: BlockId | undefined;
  readonly finalized: BlockId | undefined;
}

const idOf = ({ number, hash }: BlockId): BlockId => ({ number, hash });

/** Returns the blocks of `ring` at and above `from`, in ascending order. */
const above = (ring: BlockRing, from: bigint): RingBlock[] => {
  const blocks: RingBlock[] = [];
  for (let number = from > ring.oldest ? from : ring.oldest; number <= ring.latest.number; number += 1n) {
    const block = ring.at(number);
    if (block) {
      blocks.push(block);
    }
  }
  return blocks;
};

/** Returns the tag after an update. A tag never moves down, nor above the head, nor to another branch than the ring's. */
const laterTag = (ring: BlockRing, before: BlockId | undefined, next: BlockId | undefined): BlockId | undefined => {
  const canonical = next && ring.at(next.number);
  const isOnBranch =
    next && next.number <= ring.latest.number && (canonical === undefined || canonical.hash === next.hash);
  return isOnBranch && (before === undefined || next.number > before.number) ? idOf(next) : before;
};

/** Returns the tags below `number`. A chain that began again from another genesis has none. */
const tagsBelow = ({ safe, finalized }: Tags, number: bigint, isReset: boolean): Tags => {
  const keep = (id: BlockId | undefined) => (id && id.number < number && !isReset ? id : undefined);
  return { safe: keep(safe), finalized: keep(finalized) };
};

/** The canonical chain that is served: a block ring and two tags, replaced as a whole. It is empty at first. */
export class CanonicalChain {
  readonly #finality: Finality;
  readonly #publish: (change: HeadChange) => void;
  #ring: BlockRing | undefined;
  #heads: Heads | undefined;
  #tags: Tags = { safe: undefined, finalized: undefined };
  #isAgreed = false;
  #lowestWanted: bigint | undefined;

  /** `publish` receives each change. */
  constructor(finality: Finality, publish: (change: HeadChange) => void) {
    this.#finality = finality;
    this.#publish = publish;
  }

  get ring(): BlockRing | undefined {
    return this.#ring;
  }

  get heads(): Heads | undefined {
    return this.#heads;
  }

  /** The lowest number above the finalized block that was read with `Heads.at`, that the ring lacked, and that it can hold. */
  get lowestWanted(): bigint | undefined {
    return this.#lowestWanted;
  }

  /** Adds the path's blocks on top. Returns false if `base`, the ring that the path was found for, was replaced. */
  extend(base: BlockRing | undefined, { blocks, joined, genesis, isAgreed = false }: ChainPath): boolean {
    const [first] = blocks;
    const ring = this.#ring;
    if (ring !== base || !first) {
      return false;
    }
    const { number } = first.block;
    const from = ring ? above(ring, number) : [];
    // A final block that was replaced was not final: the chain was reset.
    if (from.length > 0 || genesis !== undefined) {
      this.#tags = tagsBelow(this.#tags, number, genesis !== undefined);
    }
    this.#isAgreed = isAgreed;
    const next = ring && joined ? ring.withTop(blocks) : createBlockRing(blocks);
    const to = blocks.map(({ block }) => block);
    this.#replace(next, from, to);
    return true;
  }

  /** Removes the blocks above this number. Returns false if `base`, which has the block, was replaced. */
  moveBack(base: BlockRing, number: bigint, isAgreed: boolean): boolean {
    const kept = sealedBlocksOf(base, number);
    if (this.#ring !== base || kept.length === 0) {
      return false;
    }
    const from = above(base, number + 1n);
    this.#tags = tagsBelow(this.#tags, number + 1n, false);
    this.#isAgreed = isAgreed;
    this.#replace(base.withTop(kept), from, []);
    return true;
  }

  /** Adds blocks below the ring's oldest block. Returns false if they are not its ancestors. */
  fill(blocks: readonly SealedBlock[]): boolean {
    const ring = this.#ring;
    const top = blocks.at(-1)?.block;
    if (!ring || !top || ring.at(ring.oldest)?.parentHash !== top.hash) {
      return false;
    }
    this.#replace(ring.withBottom(blocks), [], []);
    return true;
  }

  setTags(tags: Partial<Tags>): void {
    const ring = this.#ring;
    if (!ring) {
      return;
    }
    const safe = laterTag(ring, this.#tags.safe, tags.safe);
    const finalized = laterTag(ring, this.#tags.finalized, tags.finalized);
    if (safe === this.#tags.safe && finalized === this.#tags.finalized) {
      return;
    }
    this.#tags = { safe, finalized };
    this.#lowestWanted = this.#isFinal(this.#lowestWanted) ? undefined : this.#lowestWanted;
    const heads = this.#snapshot(ring);
    this.#heads = heads;
    this.#publish({ heads, from: [], to: [] });
  }

  /** Records that enough origins have the newest block. */
  setAgreed(): void {
    const ring = this.#ring;
    if (!ring || this.#isAgreed) {
      return;
    }
    this.#isAgreed = true;
    this.#replace(ring, [], []);
  }

  #replace(ring: BlockRing, from: readonly RingBlock[], to: readonly RingBlock[]): void {
    this.#ring = ring;
    this.#tags = this.#tagsOf(ring);
    const heads = this.#snapshot(ring);
    this.#heads = heads;
    this.#publish({ heads, from, to });
  }

  #snapshot(ring: BlockRing): Heads {
    const { latest, oldest, header } = ring;
    const { safe, finalized } = this.#tags;
    const isAgreed = this.#isAgreed;
    const at = (number: bigint): RingBlock | undefined => {
      const block = ring.at(number);
      if (block === undefined && number < oldest) {
        this.#recordWanted(number, latest.number);
      }
      return block;
    };
    return { latest, isAgreed, safe, finalized, oldest, at, header };
  }

  #recordWanted(number: bigint, latest: bigint): void {
    const isLower = this.#lowestWanted === undefined || number < this.#lowestWanted;
    if (isLower && latest - number < BigInt(RING_BLOCKS) && !this.#isFinal(number)) {
      this.#lowestWanted = number;
    }
  }

  /** The number of a final block names it, without the ring. */
  #isFinal(number: bigint | undefined): boolean {
    const { finalized } = this.#tags;
    return number !== undefined && finalized !== undefined && number <= finalized.number;
  }

  /** Returns the tags at the operator's own depth, if there is one and the ring reaches that far. */
  #tagsOf(ring: BlockRing): Tags {
    const { depth } = this.#finality;
    if (depth === undefined) {
      return this.#tags;
    }
    const number = ring.latest.number - BigInt(depth);
    const block = ring.at(number > 0n ? number : 0n);
    if (block === undefined) {
      this.#recordWanted(number, ring.latest.number);
    }
    return block ? { safe: idOf(block), finalized: idOf(block) } : this.#tags;
  }
}
