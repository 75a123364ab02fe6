import { setTimeout as sleep } from "node:timers/promises";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

const BLOCK_TIMES_MS = [200, 2_000];
const MAX_CALLS_A_MINUTE = 50;

/** Starts a forebay that nobody uses. Returns the function that ends it, and returns the calls a minute to its node. */
const startIdle = async (blockMs: number) => {
  const chain = createFakeChain({ height: 500, startSeconds: Math.floor(Date.now() / 1_000) - 1_000 });
  const node = await createFakeNode({ chain });
  const service = await createService({ nodes: [{ url: node.url }], blockTimeMs: blockMs });
  const timer = setInterval(() => chain.mine(), blockMs);
  const total = () => [...node.calls.values()].reduce((sum, count) => sum + count, 0);
  // In the first seconds, forebay reads the chain's identity and head.
  await sleep(3_000);
  const before = total();
  const startMs = performance.now();
  return async (): Promise<number> => {
    const callsAMinute = ((total() - before) * 60_000) / (performance.now() - startMs);
    clearInterval(timer);
    await service.close();
    await node.close();
    return Math.round(callsAMinute);
  };
};

/** Counts the calls a minute of an idle forebay to one node, of chains with 200 ms and 2 s blocks. Each item of a batch counts. */
export const long = async ({ seconds = 240 }: { readonly seconds: number | undefined }) => {
  const ends = await Promise.all(BLOCK_TIMES_MS.map(startIdle));
  await sleep(seconds * 1_000);
  const [fast = 0, callsAMinute = 0] = await Promise.all(ends.map((end) => end()));
  const passed = Math.max(fast, callsAMinute) <= MAX_CALLS_A_MINUTE;
  return { passed, callsAMinute, callsAMinuteOfFastChain: fast, limit: MAX_CALLS_A_MINUTE };
};
