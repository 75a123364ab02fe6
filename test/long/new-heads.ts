import { rpc } from "../support/clients/rpc.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

const LIMIT_MS = 1_000;
const ASK_EVERY_MS = 50;
const BLOCK_TIMES_MS = [2_000, 12_000];

/** Measures the time from a new head on an HTTP-only node until clients get it. */
const measure = async (blockMs: number, seconds: number): Promise<readonly number[]> => {
  const secondsPerBlock = blockMs / 1_000;
  const height = 100;
  const startSeconds = Math.floor(Date.now() / 1_000) - height * secondsPerBlock;
  const chain = createFakeChain({ height, secondsPerBlock, startSeconds });
  const node = await createFakeNode({ chain });
  const service = await createService({ nodes: [{ url: node.url }] });
  const endMs = performance.now() + Math.max(seconds * 1_000, 2.5 * blockMs);
  const delays: number[] = [];
  let minedMs: number | undefined;
  const mining = setInterval(() => {
    chain.mine();
    minedMs = performance.now();
  }, blockMs);
  while (performance.now() < endMs) {
    const head = Number((await rpc(service.url, "eth_blockNumber")).body.result);
    if (minedMs !== undefined && BigInt(head) === chain.latest.number) {
      delays.push(performance.now() - minedMs);
      minedMs = undefined;
    }
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
  }
  clearInterval(mining);
  await service.close();
  await node.close();
  return delays;
};

export const long = async ({ seconds = 120 }: { readonly seconds: number | undefined }) => {
  const results = await Promise.all(BLOCK_TIMES_MS.map((blockMs) => measure(blockMs, seconds)));
  const chains = results.map((delays, index) => ({
    blockMs: BLOCK_TIMES_MS[index],
    heads: delays.length,
    maxMs: Math.round(Math.max(...delays)),
  }));
  return { passed: chains.every(({ heads, maxMs }) => heads > 0 && maxMs <= LIMIT_MS), limitMs: LIMIT_MS, chains };
};
