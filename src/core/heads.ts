import type { Hash } from "../ethereum/hex.ts";

export interface BlockId {
  readonly number: bigint;
  readonly hash: Hash;
}

/** A canonical sealed block as the ring keeps it. `timestamp` is in seconds; `logsBloom` has 256 bytes. */
export interface RingBlock extends BlockId {
  readonly parentHash: Hash;
  readonly timestamp: bigint;
  readonly logsBloom: Uint8Array;
}

/** The header of a sealed block, and its size, as a node's block answer has them. */
export type HeaderFields = Readonly<Record<string, unknown>>;

/**
 * What is canonical at one moment: immutable, swapped whole. `safe` and `finalized` are undefined where no node says them.
 * Section 3 of the service's contract; the ring holds at most 8,192 blocks, the newest 256 with their whole header.
 */
export interface Heads {
  readonly latest: RingBlock;
  readonly safe: BlockId | undefined;
  readonly finalized: BlockId | undefined;
  /** The canonical block at that number, or undefined where the ring does not reach. */
  at(number: bigint): RingBlock | undefined;
  header(number: bigint): HeaderFields | undefined;
  /** The lowest number of the ring's unbroken part that ends at `latest`. */
  readonly oldest: bigint;
}

/** What changed from one Heads to the next: `from` (oldest first) is no longer canonical, `to` (oldest first) is new. */
export interface HeadChange {
  readonly heads: Heads;
  readonly from: readonly RingBlock[];
  readonly to: readonly RingBlock[];
}
