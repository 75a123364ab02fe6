import type { BlockId, FollowedHeads, Heads } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";
import { followOnly } from "../heads/followHeads.ts";
import type { OwnHashes } from "../verification/checkHeader.ts";

/** Formats a hash of a node in lower case. */
export const lowerHash = (hash: unknown): Hash => `0x${String(hash).slice(2).toLowerCase()}`;

/** The newest blocks whose headers are known. */
const MAX_DEPTH = 256n;

/**
 * The blocks to which the head of a chain commits. The hash of each header down to them was computed, and has the next one as parent.
 * A header with unknown fields, which may have another parent, can be in the block ring. Each header is looked at once for a head.
 */
export class CommittedBlocks {
  readonly #ownHashes: Pick<OwnHashes, "hasComputed">;
  #head: Hash | undefined;
  /** The hashes of the head and of its ancestors, as far as a block was searched. */
  #hashes: Hash[] = [];
  #parentHash: Hash | undefined;

  constructor(ownHashes: Pick<OwnHashes, "hasComputed">) {
    this.#ownHashes = ownHashes;
  }

  has(heads: Pick<Heads, "latest" | "header">, { number, hash }: BlockId): boolean {
    const { latest } = heads;
    const depth = latest.number - number;
    if (depth < 0n || depth >= MAX_DEPTH) {
      return false;
    }
    if (latest.hash !== this.#head) {
      this.#head = latest.hash;
      this.#hashes = [];
      this.#parentHash = latest.hash;
    }
    let isLinked = true;
    while (isLinked && this.#hashes.length <= depth) {
      isLinked = this.#follow(heads);
    }
    return this.#hashes[Number(depth)] === hash;
  }

  /** Adds the next ancestor. Returns false if its header does not commit to it. */
  #follow({ latest, header }: Pick<Heads, "latest" | "header">): boolean {
    const found = header(latest.number - BigInt(this.#hashes.length));
    if (found === undefined || lowerHash(found.hash) !== this.#parentHash || !this.#ownHashes.hasComputed(found)) {
      return false;
    }
    this.#hashes.push(this.#parentHash);
    this.#parentHash = lowerHash(found.parentHash);
    return true;
  }
}

/** Leaves out blocks to which the head does not commit. Subscribers are told that they missed some. */
export const onlyCommitted = (heads: FollowedHeads, committed: CommittedBlocks): FollowedHeads =>
  followOnly(heads, (block) => {
    const current = heads.current();
    return current !== undefined && (block.hash === current.latest.hash || committed.has(current, block));
  });
