import { createFakeChain } from "../../../support/fakes/fakeChain.ts";
import { createFakeNode } from "../../../support/fakes/fakeNode.ts";
import { HEIGHT, startCached, warm } from "../compareCached.ts";
import { startConfigured } from "../forebay.ts";
import { type Curve, type CurveOptions, callBody, cpuOf, type Point } from "./curve.ts";

const GIB = 2 ** 30;
const LARGE_BYTES = 1e7;

const addressOf = (bytes: number): string => `0x${bytes.toString(16).padStart(40, "0")}`;

/** Hits by the size of the response: code of contracts at a final block. */
export const measureSizes = async (options: CurveOptions): Promise<Curve> => {
  const startSeconds = Math.floor(Date.now() / 1_000) - 2 * HEIGHT;
  const chain = createFakeChain({ height: HEIGHT, startSeconds });
  const node = await createFakeNode({
    chain,
    handlers: { eth_getCode: ([address]) => `0x${"60".repeat(Number(address) / 2)}` },
  });
  const ours = await startConfigured({
    chains: [{ name: "chain", nodes: [{ url: node.url }], pending: { mode: "node" } }],
    cache: { memoryBytes: 2 * GIB },
    server: { port: 0, opsPort: 0, memoryBudgetBytes: 2 * GIB },
  });
  const points: Point[] = [];
  try {
    for (const x of options.short ? [1e3, 1e5] : [1e3, 1e4, 1e5, 1e6, 1e7, 1e8]) {
      const params = [addressOf(x), "0x10"];
      const result = await warm(`http://127.0.0.1:${ours.port}`, { method: "eth_getCode", params });
      const bare = await startCached({ result });
      const load = { body: callBody("eth_getCode", params), connections: x < LARGE_BYTES ? 16 : 2 };
      points.push({ x, forebay: await cpuOf(ours, load, options), bare: await cpuOf(bare.server, load, options) });
      await bare.server.end();
    }
  } finally {
    await ours.end();
    await node.close();
  }
  return { name: "sizes", points };
};
