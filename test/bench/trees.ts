import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startChild } from "./support/child.ts";
import { oneBlock } from "./support/compareCached.ts";
import { alternate, medianOf, type Server, spread } from "./support/compareServers.ts";
import { startForebay, THIS_TREE } from "./support/forebay.ts";
import { type BenchOptions, type BenchResult, MAX_SPREAD, round } from "./support/result.ts";

const HEIGHT = 1_100;
const COMPILE_MS = 4_000;
/** A method that is never cached and never coalesced. */
const MISS = '{"jsonrpc":"2.0","id":1,"method":"net_peerCount","params":[]}';

interface Path {
  readonly body: string;
  readonly connections: number;
}

const compare = async (trees: readonly Server[], path: Path, { short }: BenchOptions) => {
  const [ours, theirs] = trees;
  if (!ours || !theirs) {
    throw new Error("two trees are compared");
  }
  const times = { ...path, warmMs: short ? 300 : 500, measureMs: short ? 1_000 : 2_000 };
  // The first seconds are not counted, because code is being compiled.
  await alternate(ours, theirs, { ...times, measureMs: COMPILE_MS }, 1);
  const results = await alternate(ours, theirs, times, short ? 3 : 9);
  const mine = medianOf(results.ours, "cpuMicroseconds");
  const other = medianOf(results.yardstick, "cpuMicroseconds");
  return { mine, other, spread: spread(results.yardstick.map(({ cpuMicroseconds }) => cpuMicroseconds)) };
};

/** Compares the CPU per request of this checkout and of the one in AGAINST. The default, this checkout, shows the spread. */
export const bench = async (options: BenchOptions): Promise<BenchResult> => {
  const against = process.env.AGAINST === undefined ? THIS_TREE : pathToFileURL(`${resolve(process.env.AGAINST)}/`);
  const chain = createFakeChain({ height: HEIGHT, startSeconds: Math.floor(Date.now() / 1_000) - 2 * HEIGHT });
  const node = await createFakeNode({ chain, handlers: oneBlock.handlers(chain) });
  const missNode = startChild("missServer.ts");
  const missPort = Number(await missNode.message());
  const started: Server[] = [];
  const startBoth = async (port: number): Promise<readonly Server[]> => {
    const both = [await startForebay(port), await startForebay(port, against)];
    started.push(...both);
    return both;
  };
  try {
    const hits = await startBoth(Number(new URL(node.url).port));
    const { method, params } = oneBlock;
    for (const { port } of hits) {
      await until(async () => {
        const { headers } = await rpc(`http://127.0.0.1:${port}`, method, [...params]);
        return headers.get("cache-status")?.startsWith("forebay; hit") === true;
      }, `${method} is cached`);
    }
    const hitBody = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const hit = await compare(hits, { body: hitBody, connections: 32 }, options);
    const miss = await compare(await startBoth(missPort), { body: MISS, connections: 64 }, options);
    return {
      claim: "a hit and a miss cost no more CPU than in the other tree",
      ratio: round(hit.mine / hit.other),
      ours: round(hit.mine),
      yardstick: round(hit.other),
      unit: "microseconds of CPU per request",
      unreadable: Math.max(hit.spread, miss.spread) > MAX_SPREAD,
      missRatio: round(miss.mine / miss.other),
      oursMiss: round(miss.mine),
      yardstickMiss: round(miss.other),
    };
  } finally {
    await Promise.all(started.map((server) => server.end()));
    await missNode.end();
    await node.close();
  }
};
