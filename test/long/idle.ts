import { setTimeout as sleep } from "node:timers/promises";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

const BLOCK_MS = 2_000;
const MAX_CALLS_A_MINUTE = 50;

/** Counts the calls a minute of an idle forebay to one node of a 2 s chain. Each item of a batch counts. */
export const long = async ({ seconds = 240 }: { readonly seconds: number | undefined }) => {
  const chain = createFakeChain({ height: 500, startSeconds: Math.floor(Date.now() / 1_000) - 1_000 });
  const node = await createFakeNode({ chain });
  const service = await createService({ nodes: [{ url: node.url }], blockTimeMs: BLOCK_MS });
  const timer = setInterval(() => chain.mine(), BLOCK_MS);
  const total = () => [...node.calls.values()].reduce((sum, count) => sum + count, 0);
  // In the first seconds, forebay reads the chain's identity and head.
  await sleep(3_000);
  const before = total();
  const startMs = performance.now();
  await sleep(seconds * 1_000);
  const minutes = (performance.now() - startMs) / 60_000;
  const callsAMinute = (total() - before) / minutes;
  clearInterval(timer);
  await service.close();
  await node.close();
  const passed = callsAMinute <= MAX_CALLS_A_MINUTE;
  return { passed, callsAMinute: Math.round(callsAMinute), limit: MAX_CALLS_A_MINUTE };
};
