import { createFakeChain } from "../../../support/fakes/fakeChain.ts";
import { createFakeNode } from "../../../support/fakes/fakeNode.ts";
import { HEIGHT, oneBlock, startCached, warm } from "../compareCached.ts";
import { startConfigured } from "../forebay.ts";
import { type Curve, type CurveOptions, callBody, cpuOf, type Point } from "./curve.ts";

/** 10,000 connections need longer until all are open. */
const WARM_MS_PER_CONNECTION = 1;
/** Connections of the round before may still be closing. */
const MAX_CONNECTIONS = 30_000;

/** Hits of one block by the number of connections. */
export const measureConnections = async (options: CurveOptions): Promise<Curve> => {
  const startSeconds = Math.floor(Date.now() / 1_000) - 2 * HEIGHT;
  const chain = createFakeChain({ height: HEIGHT, startSeconds });
  const node = await createFakeNode({ chain, handlers: oneBlock.handlers(chain) });
  const ours = await startConfigured({
    chains: [{ name: "chain", nodes: [{ url: node.url }], pending: { mode: "node" } }],
    server: { port: 0, opsPort: 0, maxConnectionsPerAddress: MAX_CONNECTIONS },
  });
  const bare = await startCached({ result: await warm(`http://127.0.0.1:${ours.port}`, oneBlock) });
  const body = callBody(oneBlock.method, oneBlock.params);
  const points: Point[] = [];
  try {
    for (const x of options.short ? [10, 100] : [10, 100, 1_000, 3_000, 10_000]) {
      const warmMs = options.times.warmMs + x * WARM_MS_PER_CONNECTION;
      const slow = { ...options, times: { ...options.times, warmMs } };
      const load = { body, connections: x };
      points.push({ x, forebay: await cpuOf(ours, load, slow), bare: await cpuOf(bare.server, load, slow) });
    }
  } catch (error) {
    // A busy machine cannot open 10,000 connections in time.
    console.error(`connections: no point after ${points.at(-1)?.x}: ${String(error)}`);
  } finally {
    await Promise.all([ours.end(), bare.server.end()]);
    await node.close();
  }
  return { name: "connections", points };
};
