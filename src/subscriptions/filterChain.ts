import type { Context } from "../core/context.ts";
import type { BlockId, Heads, LinkedBlock } from "../core/heads.ts";
import type { BlockRange } from "../core/logRange.ts";
import type { Hash } from "../ethereum/hex.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";
import type { ReportedBlock } from "./filterStore.ts";
import { createKeyedQueue } from "./serialQueue.ts";

/** Reads sealed blocks by number, oldest first. Blocks that no node has are left out. */
export type BlocksReader = (range: BlockRange, context: Context) => Promise<readonly LinkedBlock[]>;

/** The canonical chain as far as a filter compares its blocks with it: the block ring, and blocks below it that were read. */
export interface FilterChain extends Pick<Heads, "oldest"> {
  readonly latest: LinkedBlock;
  at(number: bigint): LinkedBlock | undefined;
}

/** Limit of the blocks that one poll reads below the block ring: those of a filter's 5 minutes on a chain of 1 s. */
const MAX_READ_BLOCKS = 300n;

/** Limit of the blocks that are known for other polls. */
const MAX_KNOWN_BLOCKS = 2 * Number(MAX_READ_BLOCKS);

/** The blocks below the block ring of one chain. Polls read them one after the other, so that they are read once. */
export class BlocksBelow {
  readonly #read: BlocksReader;
  readonly #inOrder = createKeyedQueue();
  /** By hash. */
  readonly #known = new Map<Hash, LinkedBlock>();

  constructor(read: BlocksReader) {
    this.#read = read;
  }

  /**
   * Returns the chain with its blocks from a number on. Reads those that it lacks, and checks that each is the parent of the next.
   * Returns undefined if it lacks too many. Throws RpcError if the blocks are not linked, as during a reorganisation.
   */
  async extend(chain: FilterChain, from: bigint, context: Context): Promise<FilterChain | undefined> {
    const { latest, oldest } = chain;
    const top = chain.at(oldest);
    if (top === undefined || oldest - from > MAX_READ_BLOCKS) {
      return undefined;
    }
    const blocks = await this.#inOrder(top.hash, () => this.#linked(top, from, context));
    return { latest, oldest: from, at: (number) => blocks.get(number) ?? chain.at(number) };
  }

  async #linked(top: LinkedBlock, from: bigint, context: Context): Promise<ReadonlyMap<bigint, LinkedBlock>> {
    const blocks = new Map<bigint, LinkedBlock>();
    const lowest = this.#addKnown(blocks, top, from);
    if (lowest.number === from) {
      return blocks;
    }
    const read = await this.#read({ from, to: lowest.number - 1n }, context);
    if (this.#known.size + read.length > MAX_KNOWN_BLOCKS) {
      this.#known.clear();
    }
    for (const block of read) {
      this.#known.set(block.hash, block);
    }
    if (this.#addKnown(blocks, lowest, from).number !== from) {
      throw unavailable("the blocks since the last poll cannot be read now: poll again");
    }
    return blocks;
  }

  /** Adds the known ancestors of a block, down to a number. Returns the lowest one. */
  #addKnown(blocks: Map<bigint, LinkedBlock>, top: LinkedBlock, from: bigint): LinkedBlock {
    let lowest = top;
    while (lowest.number > from) {
      const parent = this.#known.get(lowest.parentHash);
      if (parent === undefined || parent.number !== lowest.number - 1n) {
        break;
      }
      blocks.set(parent.number, parent);
      lowest = parent;
    }
    return lowest;
  }
}

/** The difference between the chain that a filter reported and the canonical chain. */
export interface FilterStep {
  /** Reported blocks that are no longer canonical, oldest first. */
  readonly gone: readonly ReportedBlock[];
  /** Reported blocks that are still canonical. */
  readonly stayed: readonly ReportedBlock[];
  readonly added: BlockRange | undefined;
}

/**
 * Compares the reported blocks (oldest first) with the view. A request with a newer view may have reported blocks above
 * the view's head: they count as canonical if the blocks below them are.
 */
export const filterStep = (reported: readonly ReportedBlock[], heads: FilterChain): FilterStep => {
  const fork = reported.findIndex(({ number, hash }) => (heads.at(number)?.hash ?? hash) !== hash);
  const stayed = fork === -1 ? reported : reported.slice(0, fork);
  const gone = fork === -1 ? [] : reported.slice(fork);
  const last = stayed.at(-1)?.number ?? (gone[0] ?? heads.latest).number - 1n;
  const to = heads.latest.number;
  return { gone, stayed, added: last < to ? { from: last + 1n, to } : undefined };
};

/**
 * Returns the newest reported block that counts as canonical only because the chain does not reach it; undefined if the step is
 * certain.
 */
export const unknownBlock = (reported: readonly BlockId[], chain: FilterChain): BlockId | undefined => {
  const newest = filterStep(reported, chain).stayed.at(-1);
  return newest !== undefined && newest.number < chain.oldest ? newest : undefined;
};

/** Returns the step with all blocks from a number on as added. */
export const withAddedFrom = (step: FilterStep, from: bigint, { latest: { number: to } }: FilterChain): FilterStep => ({
  ...step,
  added: from <= to ? { from, to } : undefined,
});

/** Returns the blocks of a range that the chain has, oldest first. */
export const canonicalBlocks = ({ from, to }: BlockRange, heads: FilterChain): BlockId[] => {
  const blocks: BlockId[] = [];
  for (let number = from > heads.oldest ? from : heads.oldest; number <= to; number++) {
    const block = heads.at(number);
    if (block !== undefined) {
      blocks.push({ number, hash: block.hash });
    }
  }
  return blocks;
};
