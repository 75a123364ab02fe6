import type { Context } from "../core/context.ts";
import type { LinkedBlock } from "../core/heads.ts";
import type { BlockRange } from "../core/logRange.ts";
import type { Hash } from "../ethereum/hex.ts";
import { unavailable } from "../jsonrpc/rpcError.ts";

/** Reads sealed blocks by number, oldest first. Blocks that no node has are left out. */
export type BlocksReader = (range: BlockRange, context: Context) => Promise<readonly LinkedBlock[]>;

/** Limit of the blocks that one poll reads below the block ring: those of a filter's 5 minutes on a chain of 1 s. */
const MAX_READ_BLOCKS = 300n;

/** Creates the error of a poll that could not read the blocks that it needs. */
export const unreadableBlocks = () => unavailable("the blocks since the last poll cannot be read now: poll again");

/** The canonical chain of one poll: the block ring of its view, and blocks below it that were read. */
export class FilterChain {
  readonly #context: Context;
  readonly #read: BlocksReader;
  readonly #below = new Map<bigint, Hash>();
  #lowest: LinkedBlock | undefined;

  constructor(context: Context, read: BlocksReader) {
    this.#context = context;
    this.#read = read;
    const { heads } = context.view;
    this.#lowest = heads.at(heads.oldest);
  }

  /** Returns the hash of the block at a number. Returns undefined if it is too far below the block ring. */
  async hashAt(number: bigint): Promise<Hash | undefined> {
    const { heads } = this.#context.view;
    if (number >= heads.oldest) {
      return heads.at(number)?.hash;
    }
    if (heads.oldest - number > MAX_READ_BLOCKS) {
      return undefined;
    }
    await this.#extend(number);
    return this.#below.get(number);
  }

  /** Returns the hashes of a range. Returns undefined if it begins too far below the block ring. */
  async hashes({ from, to }: BlockRange): Promise<readonly Hash[] | undefined> {
    const hashes: Hash[] = [];
    for (let number = from; number <= to; number++) {
      const hash = await this.hashAt(number);
      if (hash === undefined) {
        return undefined;
      }
      hashes.push(hash);
    }
    return hashes;
  }

  /** Reads the blocks from a number up to those that are known. Each must be the parent of the next. */
  async #extend(from: bigint): Promise<void> {
    if (this.#lowest === undefined || from >= this.#lowest.number) {
      return;
    }
    const read = await this.#read({ from, to: this.#lowest.number - 1n }, this.#context);
    for (const block of read.toReversed()) {
      if (block.hash !== this.#lowest.parentHash) {
        break;
      }
      this.#below.set(block.number, block.hash);
      this.#lowest = block;
    }
    if (this.#lowest.number !== from) {
      throw unreadableBlocks();
    }
  }
}
