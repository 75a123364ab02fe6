import { setTimeout as sleep } from "node:timers/promises";
import { untilReady } from "../support/servers/command.ts";
import { type Lifespan, startRedis } from "../support/servers/redis.ts";
import { withLifespan } from "../support/servers/withLifespan.ts";
import { startChild } from "./support/child.ts";
import { startConfigured } from "./support/forebay.ts";
import { hasNginx, startNginx } from "./support/nginx.ts";
import { type BenchOptions, type BenchResult, round } from "./support/result.ts";
import { startWalletClients } from "./support/walletClients.ts";
import { type Counts, readStateCounts, subtract, unitsIn, withoutHeads } from "./support/walletFigures.ts";
import type { NodeCounts, NodesUrls, WalletNodesOptions } from "./support/walletNode.ts";

const BLOCK_MS = 2_000;
const POOLS = 30;
const QUOTES_PER_SECOND = 50;
const NODE = "node";
/** A time of this length in which nodes get at most this share of the units of asking directly, without heads, is learned. */
const WINDOW_MS = 4_000;
const LEARNED_SHARE = 0.1;

interface Shape {
  readonly counts: readonly number[];
  readonly wallets: number;
  readonly measuredMs: number;
}

const WHOLE: Shape = {
  ...{ counts: [1, 3, 6], wallets: 200, measuredMs: 180_000 },
};
const SHORT: Shape = {
  ...{ counts: [1, 3], wallets: 30, measuredMs: 16_000 },
};

/** Starts a replica, and waits until it is ready. */
const startReplica = async (t: Lifespan, url: string, redis: string) => {
  const chain = { name: "chain", blockTimeMs: BLOCK_MS, forks: "prague", state: { source: "trace" } };
  const server = await startConfigured({
    chains: [{ ...chain, nodes: [{ url, name: NODE }] }],
    cache: { redis },
    server: { port: 0, opsPort: 0, drainDelayMs: 0 },
    log: { level: "info" },
  });
  t.after(() => server.end());
  await untilReady(server);
  return server;
};

interface Sample {
  readonly asked: Counts;
  readonly sent: Counts;
}

const calls = (counts: Counts): number => Object.values(counts).reduce((sum, count) => sum + count, 0);

/** Returns the units of a time, for 1,000 calls of clients. */
const describe = (before: Sample, after: Sample) => {
  const [asked, sent] = [subtract(after.asked, before.asked), subtract(after.sent, before.sent)];
  const perThousand = (units: number): number => (1_000 * units) / calls(asked);
  return {
    units: perThousand(unitsIn(withoutHeads(sent))),
    heads: perThousand(unitsIn(sent) - unitsIn(withoutHeads(sent))),
    share: unitsIn(withoutHeads(sent)) / unitsIn(asked),
    sent,
  };
};

/** Samples the traffic in windows. Returns them all, the first sample in front. */
const sampleWindows = async (sample: () => Promise<Sample>, measuredMs: number): Promise<readonly Sample[]> => {
  const samples = [await sample()];
  for (const startMs = performance.now(); performance.now() - startMs < measuredMs; ) {
    await sleep(WINDOW_MS);
    samples.push(await sample());
  }
  return samples;
};

/** Returns the seconds until the end of the first window that is learned. */
const secondsUntilLearned = (samples: readonly Sample[]): number => {
  const index = samples.findIndex((after, at) => {
    const before = samples[at - 1];
    return before !== undefined && describe(before, after).share <= LEARNED_SHARE;
  });
  return index < 0 ? Number.NaN : (index * WINDOW_MS) / 1_000;
};

const startNode = async (t: Lifespan, wallets: number) => {
  const node = startChild("walletNode.ts");
  t.after(() => node.end());
  const nodes = [{ name: NODE, source: "trace" as const }];
  node.send({ blockMs: BLOCK_MS, wallets, pools: POOLS, nodes } satisfies WalletNodesOptions);
  const urls = (await node.message()) as NodesUrls;
  return {
    url: urls[NODE]?.url ?? "",
    sent: async (): Promise<Counts> => {
      node.send("counts");
      return ((await node.message()) as NodeCounts).calls[NODE] ?? {};
    },
  };
};

/** Measures replicas behind nginx. */
const measure = (replicas: number, { wallets, measuredMs }: Shape) =>
  withLifespan(async (t) => {
    const redis = await startRedis(t);
    const node = await startNode(t, wallets);
    const start = () => startReplica(t, node.url, redis.url);
    const servers = await Promise.all(Array.from({ length: replicas }, start));
    const nginx = await startNginx(...servers.map(({ port }) => port));
    t.after(() => nginx.end());
    const load = { wallets, pools: POOLS, quotesPerSecond: QUOTES_PER_SECOND };
    const clients = startWalletClients({ url: `http://127.0.0.1:${nginx.port}`, ...load });
    t.after(() => clients.stop());
    const sample = async (): Promise<Sample> => ({ asked: Object.fromEntries(clients.calls), sent: await node.sent() });
    const samples = await sampleWindows(sample, measuredMs);
    const [first, middle, last] = [samples.at(0), samples.at(samples.length >> 1), samples.at(-1)];
    if (first === undefined || middle === undefined || last === undefined) {
      throw new Error("nothing was measured");
    }
    const { events } = await readStateCounts(servers[0]?.opsUrl ?? "");
    const { errors } = clients;
    return {
      replicas,
      ...{ whole: describe(first, last), later: describe(middle, last), events, errors },
      learnedSeconds: secondsUntilLearned(samples),
    };
  });

type Row = Awaited<ReturnType<typeof measure>>;

const print = (rows: readonly Row[]): void => {
  console.table(
    rows.map(({ replicas, whole, later, learnedSeconds, errors }) => ({
      ...{ replicas, errors },
      "units per 1,000 calls": round(whole.units, 0),
      "units, second half": round(later.units, 0),
      "units of heads": round(whole.heads, 0),
      [`s until ${100 * LEARNED_SHARE} % of direct`]: learnedSeconds,
    })),
  );
  for (const { replicas, whole, later, events } of rows) {
    console.log(JSON.stringify({ replicas, sent: whole.sent, later: later.sent, events }));
  }
};

/** Counts the units of replicas with one Redis against those of one replica, without those of heads. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  if (!hasNginx()) {
    throw new Error("nginx is not installed: it shares the calls among the replicas");
  }
  const shape = short ? SHORT : WHOLE;
  const rows: Row[] = [];
  for (const replicas of shape.counts) {
    rows.push(await measure(replicas, shape));
  }
  print(rows);
  const rowOf = (replicas: number) => rows.find((row) => row.replicas === replicas);
  const ofOne = (replicas: number, figure: (row: Row) => number): number => {
    const [one, several] = [rowOf(1), rowOf(replicas)];
    return one && several ? round(figure(several) / figure(one)) : Number.NaN;
  };
  const unitsOf = ({ whole }: Row): number => whole.units;
  const ours = round(rowOf(3)?.whole.units ?? Number.NaN, 0);
  const yardstick = round(rowOf(1)?.whole.units ?? Number.NaN, 0);
  return {
    claim: "units of three replicas with one Redis, without heads, against those of one: at most 1.5 times",
    ...{ ratio: round(yardstick / ours), ours, yardstick },
    unit: "units per 1,000 calls",
    unitsOfThree: ofOne(3, unitsOf),
    unitsOfSix: ofOne(6, unitsOf),
    learningOfThree: ofOne(3, ({ learnedSeconds }) => learnedSeconds),
    learningOfSix: ofOne(6, ({ learnedSeconds }) => learnedSeconds),
    errors: rows.reduce((total, { errors }) => total + errors, 0),
  };
};
