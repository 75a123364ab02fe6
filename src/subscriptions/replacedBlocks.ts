import type { Context } from "../core/context.ts";
import type { BlockId, Heads, RingBlock } from "../core/heads.ts";
import { type Hash, isHash, ZERO_HASH } from "../ethereum/hex.ts";
import type { SegmentStore } from "../logs/cachedSegments.ts";
import type { FilterChain } from "./filterChain.ts";

/** Returns the parent's hash of a block of any branch, or undefined if no node has the block. */
export type ParentHashReader = (hash: Hash, context: Context) => Promise<Hash | undefined>;

/** Limit of the blocks that one reorganisation replaces, and of those whose parents are cached. */
export const MAX_REPLACED_BLOCKS = 256;

/** Limit of the hashes of cached blocks. Those of a view and of one with confirmations are fewer, so that neither evicts the other. */
const MAX_CACHED_HASHES = 2 * MAX_REPLACED_BLOCKS;

const keyOf = (hash: Hash): string => `block:${hash}`;

const HASH_LENGTH = ZERO_HASH.length;

/** A block that a reorganisation replaced. */
export interface ReplacedBlock extends BlockId {
  /** Undefined if the cache has lost the block. */
  readonly logsBloom: Uint8Array | undefined;
}

interface CachedBlock extends Pick<ReplacedBlock, "logsBloom"> {
  readonly parentHash: Hash;
}

/** What a reorganisation did to the blocks up to a cursor. */
export interface Reorganisation {
  /** The replaced blocks, oldest first. Empty if the cursor is canonical. */
  readonly gone: readonly ReplacedBlock[];
  /** The newest canonical block that the filter has reported, or that was there before the filter. */
  readonly fork: bigint;
}

/** The parents and blooms of recent blocks. Nodes forget a block that was replaced, so that they are cached, in Redis too. */
export class ReplacedBlocks {
  readonly #store: SegmentStore;
  readonly #parentHashOf: ParentHashReader;
  /** The hashes of blocks that this process has cached, those of all views. */
  readonly #cached = new Set<Hash>();

  constructor(store: SegmentStore, parentHashOf: ParentHashReader) {
    this.#store = store;
    this.#parentHashOf = parentHashOf;
  }

  /** Caches the blocks that a reorganisation can replace. Call it with each view. */
  remember(heads: Heads): void {
    if (this.#cached.has(heads.latest.hash)) {
      return;
    }
    for (const block of recentBlocks(heads)) {
      if (!this.#cached.has(block.hash)) {
        this.#cached.add(block.hash);
        this.#store.set(
          keyOf(block.hash),
          Buffer.concat([Buffer.from(block.parentHash), block.logsBloom]),
          "recent",
          block,
        );
      }
    }
    for (const hash of this.#cached) {
      if (this.#cached.size <= MAX_CACHED_HASHES) {
        break;
      }
      this.#cached.delete(hash);
    }
  }

  /**
   * Finds the newest canonical ancestor of a cursor. Undefined if it is not found, because a replaced block is forgotten. While
   * a block above the head is forgotten, the head counts as that ancestor: the view may only be older.
   */
  async find(cursor: BlockId, chain: FilterChain, context: Context): Promise<Reorganisation | undefined> {
    const { number: head } = context.view.heads.latest;
    const gone: ReplacedBlock[] = [];
    let block: BlockId = cursor;
    for (;;) {
      const isAbove = block.number > head;
      const canonical = isAbove ? undefined : await chain.hashAt(block.number);
      if (canonical === block.hash) {
        return { gone: gone.reverse(), fork: block.number };
      }
      const isUnknown = canonical === undefined && !isAbove;
      const isEnd = isUnknown || block.number === 0n || gone.length === MAX_REPLACED_BLOCKS;
      const known = isEnd ? undefined : await this.#read(block.hash, context);
      if (known === undefined) {
        return isAbove ? { gone: [], fork: head } : undefined;
      }
      const { number, hash } = block;
      gone.push({ number, hash, logsBloom: known.logsBloom });
      block = { number: number - 1n, hash: known.parentHash };
    }
  }

  async #read(hash: Hash, context: Context): Promise<CachedBlock | undefined> {
    const [cached] = await this.#store.get([keyOf(hash)]);
    const cachedHash = cached && Buffer.from(cached.bytes.subarray(0, HASH_LENGTH)).toString();
    if (cached !== undefined && isHash(cachedHash)) {
      return { parentHash: cachedHash, logsBloom: cached.bytes.subarray(HASH_LENGTH) };
    }
    const parentHash = await this.#parentHashOf(hash, context);
    return parentHash && { parentHash, logsBloom: undefined };
  }
}

/** The newest blocks of the ring that a reorganisation can replace, newest first. */
const recentBlocks = function* ({ latest, finalized, at }: Heads): Generator<RingBlock> {
  const end = latest.number - BigInt(MAX_REPLACED_BLOCKS);
  for (let number = latest.number; number > end && number > (finalized?.number ?? -1n); number--) {
    const block = at(number);
    if (block === undefined) {
      return;
    }
    yield block;
  }
};
