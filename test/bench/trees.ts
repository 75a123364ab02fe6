import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startChild } from "./support/child.ts";
import { oneBlock } from "./support/compareCached.ts";
import { alternate, type Measured, median, type Server } from "./support/compareServers.ts";
import { startForebay, THIS_TREE } from "./support/forebay.ts";
import { type BenchOptions, type BenchResult, MAX_SPREAD, round } from "./support/result.ts";

const HEIGHT = 1_100;
const COMPILE_MS = 4_000;
const BATCH = 100;
/** A method that is never cached and never coalesced. */
const MISS = '{"jsonrpc":"2.0","id":1,"method":"net_peerCount","params":[]}';

interface Path {
  readonly body: string;
  readonly connections: number;
  /** The port of the node. */
  readonly node: number;
  readonly isHit: boolean;
}

interface Compared {
  /** Medians, in microseconds of CPU per request. */
  readonly ours: number;
  readonly theirs: number;
  /** Median of the ratios of all pairs of measurements that follow each other. */
  readonly ratio: number;
  /** Difference of the largest and the smallest ratio of a pair of processes. */
  readonly spread: number;
}

const untilHit = async ({ port }: Server): Promise<void> => {
  const { method, params } = oneBlock;
  await until(async () => {
    const { headers } = await rpc(`http://127.0.0.1:${port}`, method, [...params]);
    return headers.get("cache-status")?.startsWith("forebay; hit") === true;
  }, `${method} is cached`);
};

/** Measures a new process of each tree in turn, in short slices, so that other load on the machine affects both. */
const comparePair = async (against: URL, path: Path, short: boolean): Promise<readonly [Measured, Measured][]> => {
  const started: Server[] = [];
  try {
    const ours = await startForebay(path.node);
    started.push(ours);
    const theirs = await startForebay(path.node, against);
    started.push(theirs);
    if (path.isHit) {
      await Promise.all(started.map(untilHit));
    }
    const load = { ...path, warmMs: short ? 200 : 300, measureMs: short ? 500 : 700 };
    // The first seconds are not counted, because code is being compiled.
    await alternate(ours, theirs, { ...load, measureMs: short ? 1_000 : COMPILE_MS }, 1);
    const results = await alternate(ours, theirs, load, short ? 3 : 12);
    return results.ours.flatMap((mine, index) => {
      const other = results.yardstick[index];
      return other === undefined ? [] : [[mine, other] as [Measured, Measured]];
    });
  } finally {
    await Promise.all(started.map((server) => server.end()));
  }
};

/** Compares several pairs of processes, because one process compiles the same code better than another. */
const compare = async (against: URL, path: Path, { short }: BenchOptions): Promise<Compared> => {
  const pairs: (readonly [Measured, Measured])[] = [];
  const ratios: number[] = [];
  const ratioOf = (some: readonly (readonly [Measured, Measured])[]): number =>
    median(some.map(([mine, other]) => mine.cpuMicroseconds / other.cpuMicroseconds));
  for (let index = 0; index < (short ? 1 : 3); index++) {
    const measured = await comparePair(against, path, short);
    pairs.push(...measured);
    ratios.push(ratioOf(measured));
  }
  return {
    ours: median(pairs.map(([mine]) => mine.cpuMicroseconds)),
    theirs: median(pairs.map(([, other]) => other.cpuMicroseconds)),
    ratio: ratioOf(pairs),
    spread: Math.max(...ratios) - Math.min(...ratios),
  };
};

/** Compares the CPU per request of this checkout and of the one in AGAINST. The default, this checkout, shows the spread. */
export const bench = async (options: BenchOptions): Promise<BenchResult> => {
  const against = process.env.AGAINST === undefined ? THIS_TREE : pathToFileURL(`${resolve(process.env.AGAINST)}/`);
  const chain = createFakeChain({ height: HEIGHT, startSeconds: Math.floor(Date.now() / 1_000) - 2 * HEIGHT });
  const node = await createFakeNode({ chain, handlers: oneBlock.handlers(chain) });
  const missNode = startChild("missServer.ts");
  try {
    const missPort = Number(await missNode.message());
    const hitPort = Number(new URL(node.url).port);
    const { method, params } = oneBlock;
    const call = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const batch = `[${Array.from({ length: BATCH }, () => call).join()}]`;
    const hit = await compare(against, { body: call, connections: 32, node: hitPort, isHit: true }, options);
    const miss = await compare(against, { body: MISS, connections: 64, node: missPort, isHit: false }, options);
    const hits = await compare(against, { body: batch, connections: 8, node: hitPort, isHit: true }, options);
    return {
      claim: "a hit, a miss and a batch of hits cost no more CPU than in the other tree",
      ratio: round(hit.ratio),
      ours: round(hit.ours),
      yardstick: round(hit.theirs),
      unit: "microseconds of CPU per request",
      unreadable: Math.max(hit.spread, miss.spread, hits.spread) > MAX_SPREAD,
      spread: round(hit.spread),
      missRatio: round(miss.ratio),
      oursMiss: round(miss.ours),
      yardstickMiss: round(miss.theirs),
      missSpread: round(miss.spread),
      batchRatio: round(hits.ratio),
      oursBatch: round(hits.ours),
      yardstickBatch: round(hits.theirs),
      batchSpread: round(hits.spread),
    };
  } finally {
    await missNode.end();
    await node.close();
  }
};
