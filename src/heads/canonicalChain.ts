import type { BlockId, HeadChange, Heads, RingBlock } from "../core/heads.ts";
import type { SealedBlock } from "../nodes/sealedBlock.ts";
import { type BlockRing, createBlockRing } from "./blockRing.ts";
import type { ChainPath } from "./chainPath.ts";

/** What a node's newest block is to the chain that is served. */
export type HeadCase = "first" | "known" | "higher" | "conflict" | "unknowable";

export const classify = (ring: BlockRing | undefined, { block }: SealedBlock): HeadCase => {
  if (!ring) {
    return "first";
  }
  if (block.number > ring.latest.number) {
    return "higher";
  }
  const held = ring.at(block.number);
  if (!held) {
    return "unknowable";
  }
  return held.hash === block.hash ? "known" : "conflict";
};

export type Finality = "node" | { readonly depth: number };

interface Tags {
  readonly safe: BlockId | undefined;
  readonly finalized: BlockId | undefined;
}

/** The one canonical chain as it is served: a ring and two tags, swapped whole. */
export interface CanonicalChain {
  readonly ring: BlockRing | undefined;
  readonly heads: Heads | undefined;
  /** Puts a head on top. Refused (false) where the ring is no longer the one that the path was found for. */
  extend(base: BlockRing | undefined, path: ChainPath): boolean;
  /** Fills the ring below its oldest block; refused where they do not fit. */
  fill(blocks: readonly SealedBlock[]): boolean;
  setTags(tags: Partial<Tags>): void;
}

const idOf = ({ number, hash }: BlockId): BlockId => ({ number, hash });

const snapshot = (ring: BlockRing, { safe, finalized }: Tags): Heads => ({
  latest: ring.latest,
  safe,
  finalized,
  oldest: ring.oldest,
  at: ring.at,
  header: ring.header,
});

/** Ascending blocks of `ring` at and above `from`. */
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

export const createCanonicalChain = (finality: Finality, publish: (change: HeadChange) => void): CanonicalChain => {
  let ring: BlockRing | undefined;
  let heads: Heads | undefined;
  let tags: Tags = { safe: undefined, finalized: undefined };

  /** The operator's own depth, where the ring reaches that far. */
  const byDepth = (current: BlockRing): Tags => {
    if (finality === "node") {
      return tags;
    }
    const number = current.latest.number - BigInt(finality.depth);
    const block = current.at(number > 0n ? number : 0n);
    return block ? { safe: idOf(block), finalized: idOf(block) } : tags;
  };

  const swap = (next: BlockRing, from: readonly RingBlock[], to: readonly RingBlock[]): void => {
    ring = next;
    tags = byDepth(next);
    heads = snapshot(next, tags);
    publish({ heads, from, to });
  };

  /** A tag never goes back, never stands above the head, and never on another branch than the ring's. */
  const later = (current: BlockRing, before: BlockId | undefined, next: BlockId | undefined): BlockId | undefined => {
    const held = next && current.at(next.number);
    const fits = next && next.number <= current.latest.number && (held === undefined || held.hash === next.hash);
    return fits && (before === undefined || next.number > before.number) ? idOf(next) : before;
  };

  return {
    get ring() {
      return ring;
    },
    get heads() {
      return heads;
    },
    extend: (base, { blocks, joined, onto, genesis }) => {
      const [first] = blocks;
      if (ring !== base || !first) {
        return false;
      }
      const from = ring ? above(ring, first.block.number) : [];
      // What was final and is gone was never final: a chain that began anew.
      const survives = (id: BlockId | undefined) =>
        id && id.number < first.block.number && genesis === undefined ? id : undefined;
      if (from.length > 0 || genesis !== undefined) {
        tags = { safe: survives(tags.safe), finalized: survives(tags.finalized) };
      }
      const below = onto ?? ring;
      const next = below && joined ? below.withTop(blocks) : createBlockRing(blocks);
      swap(
        next,
        from,
        blocks.map(({ block }) => block),
      );
      return true;
    },
    fill: (blocks) => {
      const last = blocks.at(-1)?.block;
      if (!ring || !last || ring.at(ring.oldest)?.parentHash !== last.hash) {
        return false;
      }
      swap(ring.withBottom(blocks), [], []);
      return true;
    },
    setTags: (next) => {
      if (!ring) {
        return;
      }
      const safe = later(ring, tags.safe, next.safe);
      const finalized = later(ring, tags.finalized, next.finalized);
      if (safe !== tags.safe || finalized !== tags.finalized) {
        tags = { safe, finalized };
        heads = snapshot(ring, tags);
        publish({ heads, from: [], to: [] });
      }
    },
  };
};
