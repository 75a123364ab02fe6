import { createFakeChain, type FakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode, type FakeNodeOptions } from "../support/fakes/fakeNode.ts";
import type { Lifespan } from "../support/servers/redis.ts";

const HEIGHT = 100;

export interface LiveChainOptions {
  readonly chainId?: number;
  readonly blockMs?: number;
}

/** Creates a chain whose blocks come with the clock. */
export const createLiveChain = (t: Lifespan, { chainId, blockMs = 1_000 }: LiveChainOptions = {}): FakeChain => {
  const secondsPerBlock = blockMs / 1_000;
  const startSeconds = Math.floor(Date.now() / 1_000 - HEIGHT * secondsPerBlock);
  const chain = createFakeChain({ height: HEIGHT, secondsPerBlock, startSeconds, ...(chainId && { chainId }) });
  const timer = setInterval(() => chain.mine(), blockMs);
  t.after(() => clearInterval(timer));
  return chain;
};

/** Starts a node of a chain. */
export const startLiveNode = async (
  t: Lifespan,
  chain: FakeChain = createLiveChain(t),
  handlers: FakeNodeOptions["handlers"] = {},
): Promise<FakeNode> => {
  const node = await createFakeNode({ chain, handlers });
  t.after(() => node.close());
  return node;
};
