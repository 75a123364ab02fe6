import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { HEIGHT, oneBlock, startCached, warm } from "./support/compareCached.ts";
import { alternate } from "./support/compareServers.ts";
import { cpuResult } from "./support/cpuResult.ts";
import type { BenchOptions, BenchResult } from "./support/result.ts";

const KEYS = Array.from({ length: 50 }, (_, index) => `key-${index}`);
const COMPILE_MS = 4_000;

/** Compares the CPU time of a cache hit with keys, whose usage is counted, with that of one without keys. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const chain = createFakeChain({ height: HEIGHT, startSeconds: Math.floor(Date.now() / 1_000) - 2 * HEIGHT });
  const node = await createFakeNode({ chain, handlers: oneBlock.handlers(chain) });
  const key = KEYS.at(-1) ?? "";
  const plain = await startCached({ nodeUrl: node.url, redisUrl: undefined });
  const keyed = await startCached({ nodeUrl: node.url, redisUrl: undefined, keys: KEYS });
  try {
    await warm(plain.url, oneBlock);
    await warm(keyed.url, oneBlock, { "x-api-key": key });
    const load = {
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: oneBlock.method, params: oneBlock.params }),
      connections: 32,
      warmMs: short ? 500 : 1_000,
      measureMs: short ? 1_000 : 4_000,
    };
    const ours = { ...keyed.server, header: `x-api-key: ${key}` };
    await alternate(ours, plain.server, { ...load, measureMs: short ? load.measureMs : COMPILE_MS }, 1);
    const results = await alternate(ours, plain.server, load, short ? 5 : 9);
    return {
      claim: "a cache hit with 50 keys costs little more than without keys: at least 0.95",
      ...cpuResult(results),
    };
  } finally {
    await Promise.all([plain.server.end(), keyed.server.end()]);
    await node.close();
  }
};
