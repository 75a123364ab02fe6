import { createFakeChain, type FakeChain, type FakeChainOptions } from "../support/fakes/fakeChain.ts";

export interface ForgeOptions extends Pick<FakeChainOptions, "secondsPerBlock"> {
  /** The number of the newest blocks that it does not have. */
  readonly depth?: number;
}

/** Returns a chain with the same blocks, and `count` others on top of them. */
export const forge = (
  { blocks }: FakeChain,
  count: number,
  { depth = 0, secondsPerBlock = 2 }: ForgeOptions = {},
): FakeChain => {
  const startSeconds = Number(blocks[0]?.timestamp);
  const height = blocks.length - 1;
  // With another block time, all blocks get other times.
  const hasSameTimes = Number(blocks[height]?.timestamp) === startSeconds + Math.floor(height * secondsPerBlock);
  const forged = createFakeChain({ height, startSeconds, secondsPerBlock, base: hasSameTimes ? blocks : [] });
  forged.reorg(depth, count);
  return forged;
};
