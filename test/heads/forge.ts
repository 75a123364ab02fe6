import { createFakeChain, type FakeChain, type FakeChainOptions } from "../support/fakes/fakeChain.ts";

export interface ForgeOptions extends Pick<FakeChainOptions, "secondsPerBlock"> {
  /** The number of the newest blocks that it does not have. */
  readonly depth?: number;
}

/** Returns a chain with the same blocks, and `count` others on top of them. */
export const forge = (
  { blocks }: FakeChain,
  count: number,
  { depth = 0, ...options }: ForgeOptions = {},
): FakeChain => {
  const startSeconds = Number(blocks[0]?.timestamp);
  const forged = createFakeChain({ height: blocks.length - 1, startSeconds, ...options });
  forged.reorg(depth, count);
  return forged;
};
