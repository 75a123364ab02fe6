import type { BlockId, Heads, RingBlock } from "../core/heads.ts";
import type { AwaitedBlock, OnWriteSetRead } from "./awaitedBlock.ts";

/** Write sets that are read at the same time. With blocks of 200 ms and a second for each read, fewer would fall behind. */
const MAX_CONCURRENT_READS = 6;

/** Returns the function that recognizes blocks of the served chain. */
export const isCanonicalIn =
  (heads: Heads) =>
  ({ number, hash }: BlockId): boolean =>
    heads.at(number)?.hash === hash;

/** Returns the blocks above `tip`, or undefined if the ring does not link them. */
export const linkedBlocks = (heads: Heads, tip: BlockId): readonly RingBlock[] | undefined => {
  const blocks: RingBlock[] = [];
  let parentHash = tip.hash;
  for (let number = tip.number + 1n; number <= heads.latest.number; number++) {
    const block = heads.at(number);
    if (block?.parentHash !== parentHash) {
      return undefined;
    }
    parentHash = block.hash;
    blocks.push(block);
  }
  return blocks;
};

/** The canonical blocks whose write sets are not applied yet: ascending and linked. */
export class AwaitedBlocks {
  #blocks: AwaitedBlock[] = [];

  get first(): AwaitedBlock | undefined {
    return this.#blocks[0];
  }

  get length(): number {
    return this.#blocks.length;
  }

  get last(): AwaitedBlock | undefined {
    return this.#blocks.at(-1);
  }

  find({ number, hash }: BlockId): AwaitedBlock | undefined {
    const awaited = this.first && this.#blocks[Number(number - this.first.block.number)];
    return awaited?.block.hash === hash ? awaited : undefined;
  }

  push(awaited: AwaitedBlock): void {
    this.#blocks.push(awaited);
  }

  /** Removes this block if it is the first. */
  shift(awaited: AwaitedBlock): void {
    if (this.first === awaited) {
      this.#blocks.shift();
    }
  }

  /** Starts to read the write sets of the next blocks. */
  readNext(onRead: OnWriteSetRead): void {
    for (const awaited of this.#blocks.slice(0, MAX_CONCURRENT_READS)) {
      // The follower sees the error when it applies the block.
      awaited.read(onRead).catch(() => undefined);
    }
  }

  /** Removes the blocks that a reorganisation replaced, and ends their reads. */
  cancelOrphans(isCanonical: (block: BlockId) => boolean): void {
    const orphan = this.#blocks.findIndex(({ block }) => !isCanonical(block));
    this.#cancelFrom(orphan < 0 ? this.#blocks.length : orphan);
  }

  /** See AwaitedBlock. */
  dropBuffered(node: string): void {
    for (const awaited of this.#blocks) {
      awaited.dropBuffered(node);
    }
  }

  cancelAll(): void {
    this.#cancelFrom(0);
  }

  #cancelFrom(index: number): void {
    for (const awaited of this.#blocks.splice(index)) {
      awaited.cancel();
    }
  }
}
