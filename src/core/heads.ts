import type { Hash } from "../ethereum/hex.ts";

export interface BlockId {
  readonly number: bigint;
  readonly hash: Hash;
}

export interface LinkedBlock extends BlockId {
  readonly parentHash: Hash;
}

/** A canonical sealed block in the block ring. `timestamp` is in seconds; `logsBloom` has 256 bytes. */
export interface RingBlock extends LinkedBlock {
  readonly timestamp: bigint;
  readonly logsBloom: Uint8Array;
}

/** The header fields of a sealed block and its size, as a node returned them. */
export type HeaderFields = Readonly<Record<string, unknown>>;

/**
 * The canonical blocks at one moment. It is immutable and replaced as a whole. The block ring has up to 8,192 blocks,
 * the newest 256 with their whole header. `safe` and `finalized` are `undefined` if no node reports them.
 */
export interface Heads {
  readonly latest: RingBlock;
  /** Whether a majority of several origins has `latest`. If not, one origin alone decided. */
  readonly isAgreed: boolean;
  readonly safe: BlockId | undefined;
  readonly finalized: BlockId | undefined;
  /** Returns the canonical block at a number, or `undefined` if the ring does not have it. */
  at(number: bigint): RingBlock | undefined;
  header(number: bigint): HeaderFields | undefined;
  /** The lowest number of the ring's part without gaps that ends at `latest`. */
  readonly oldest: bigint;
}

/** Whether a block is the one at its number in some heads or in a ring. */
export const isCanonicalIn = (
  blocks: { at(number: bigint): BlockId | undefined } | undefined,
  { number, hash }: BlockId,
): boolean => blocks?.at(number)?.hash === hash;

/** Returns the header of a block. Undefined if the block is not canonical, or its header is not in the ring. */
export const canonicalHeader = (heads: Heads | undefined, block: BlockId): HeaderFields | undefined =>
  isCanonicalIn(heads, block) ? heads?.header(block.number) : undefined;

/** The difference between two Heads: blocks `from` are no longer canonical, blocks `to` are new. Both are oldest first. */
export interface HeadChange {
  readonly heads: Heads;
  readonly from: readonly RingBlock[];
  readonly to: readonly RingBlock[];
}

/** The heads of a chain, as they are now. */
export interface CurrentHeads {
  current(): Heads | undefined;
}

/** The heads of a chain, as their followers read them. */
export interface FollowedHeads extends CurrentHeads {
  /** Calls the listener synchronously when the heads change. */
  subscribe(listener: (change: HeadChange) => void): () => void;
}
