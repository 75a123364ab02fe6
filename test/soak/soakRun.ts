import { setTimeout as sleep } from "node:timers/promises";
import { Agent } from "undici";
import { createFeedServer } from "../devnet/feedServer.ts";
import { createRandomBelow } from "../support/builders/randomValues.ts";
import { type Lifespan, startRedis } from "../support/servers/redis.ts";
import { TruthChain } from "../world/chain/truthChain.ts";
import { createTurns } from "../world/chain/turns.ts";
import { runFilterClient } from "../world/clients/filterClient.ts";
import { type ClientOptions, runHttpClient, type SoakTarget } from "../world/clients/httpClient.ts";
import { runSocketClient } from "../world/clients/socketClient.ts";
import { Recorder } from "../world/judge/recorder.ts";
import { startTruthNode } from "../world/nodes/truthNode.ts";
import { SoakReplicas } from "../world/proxies/forebayReplicas.ts";
import { startRoundRobin } from "../world/servers/roundRobin.ts";
import { REDIS_TIMEOUT_MS, runFaults, type SoakWorld } from "./faults.ts";
import { plantedFaultOf } from "./plantedFaults.ts";

export interface SoakOptions {
  readonly seconds: number;
  readonly seed: number;
  /** Name of a planted fault. The run ends as soon as it is found. */
  readonly planted?: string | undefined;
  /** Names of the only faults of the devnet. Default: all. */
  readonly faults?: readonly string[] | undefined;
}

const CHAIN_ID = 901;
const OTHER_CHAIN_ID = 902;
const BLOCK_MS = 1_000;
const MESSAGES_A_BLOCK = 4;
const CHECK_MS = 100;
/** Time in which all clients end, the start of a killed replica included. */
const END_MS = 60_000;
const LIFE = { minMs: 8_000, maxMs: 40_000 };
/** Longer than the longest allowed lag: later events of a subscription are not judged. */
const PLANTED_LIFE = { minMs: 9_000, maxMs: 12_000 };
const HEAP_PERIOD_MS = 60_000;
/** Heaps are compared from this time, or from a third of a shorter run. */
const COMPARED_FROM_MS = 600_000;
/** Between the tenth minute and the end. Shorter runs only print the growth. */
const MAX_HEAP_GROWTH_BYTES = 5 * 1024 * 1024;
const MIN_COMPARED_MS = 600_000;
/** The caches are full long before heaps are compared. */
const CACHE_BYTES = 4 * 1024 * 1024;
/** Executions cache the values of four such requests at least. */
const MAX_STATE_READS = 200;
const HTTP_CLIENTS = 10;
const BATCH_CLIENTS = 4;
const SOCKET_CLIENTS = 3;

const throwStuck = (): never => {
  throw new Error("a client did not end");
};

/** Seals a block a second, after its messages in the feed. */
const build = async (
  chain: TruthChain,
  change: SoakWorld["change"],
  random: (below: number) => number,
  signal: AbortSignal,
): Promise<void> => {
  let messages = 0;
  while (!signal.aborted) {
    await change(() => chain.step(random(3)));
    await sleep(BLOCK_MS / MESSAGES_A_BLOCK);
    messages++;
    if (messages === MESSAGES_A_BLOCK) {
      await change(() => chain.seal());
      messages = 0;
    }
  }
};

const mine = async (chain: TruthChain, random: (below: number) => number, signal: AbortSignal): Promise<void> => {
  while (!signal.aborted) {
    await sleep(BLOCK_MS);
    await (random(20) === 0 ? chain.reorg(2, 3) : chain.mine(random(3)));
  }
};

const startWorld = async (t: Lifespan, { seed, seconds, planted }: SoakOptions, recorder: Recorder) => {
  // A heap is compared once its process has filled its tables.
  const keptMs = performance.now() + comparedFromMs(seconds) / 2;
  const random = createRandomBelow(seed);
  const [chain, other] = await Promise.all([
    TruthChain.create(CHAIN_ID, seed),
    TruthChain.create(OTHER_CHAIN_ID, seed),
  ]);
  const nodes = [await startTruthNode(t, chain), await startTruthNode(t, chain), await startTruthNode(t, chain)];
  const otherNode = await startTruthNode(t, other);
  const feed = await createFeedServer("text");
  t.after(() => feed.close());
  chain.events.on("message", feed.send);
  const redis = await startRedis(t);
  // Two honest origins beside the second, which lies at times: it can invent blocks, and has no majority.
  const urls = nodes.map(({ url }) => url);
  const replicas = await SoakReplicas.start(t, {
    count: 2,
    planted,
    configOf: (index) => ({
      chains: [
        {
          name: "main",
          chainId: CHAIN_ID,
          nodes: (index === 0 ? urls : urls.toReversed()).map((url) => ({ url })),
          blockTimeMs: BLOCK_MS,
          forks: "prague",
          state: { cacheBytes: CACHE_BYTES },
          simulate: { maxStateReads: MAX_STATE_READS },
          pending: { feeds: [feed.url] },
        },
        {
          name: "other",
          chainId: OTHER_CHAIN_ID,
          nodes: [{ url: otherNode.url }],
          blockTimeMs: BLOCK_MS,
          forks: "prague",
          state: { cacheBytes: CACHE_BYTES },
          simulate: { maxStateReads: MAX_STATE_READS },
        },
      ],
      cache: { redis: redis.url, redisTimeoutMs: REDIS_TIMEOUT_MS, memoryBytes: CACHE_BYTES },
    }),
    onUnexpectedEnd: (text) => recorder.find("ended", text),
  });
  const world: SoakWorld = {
    ...{ chain, nodes, redis, replicas, random, feed: feed.faults },
    change: createTurns(),
    areReplicasKept: () => performance.now() >= keptMs,
    allowLag: () => {
      const ends = [chain.lagBound.beginFault(), other.lagBound.beginFault()];
      return () => {
        for (const end of ends) {
          end();
        }
      };
    },
  };
  return { world, other };
};

const comparedFromMs = (seconds: number): number => Math.min(COMPARED_FROM_MS, (seconds * 1_000) / 3);

/** Returns the growth of each heap between two measurements, in bytes, by replica. Replicas that ended in between are left out. */
const growthOf = (
  first: Readonly<Record<string, number>>,
  last: Readonly<Record<string, number>>,
): Readonly<Record<string, number>> =>
  Object.fromEntries(
    Object.entries(first).flatMap(([name, bytes]) => (name in last ? [[name, (last[name] ?? 0) - bytes]] : [])),
  );

/** Runs clients, faults and chains until the time is over, and compares each answer with the record. */
export const runSoak = async (options: SoakOptions) => {
  const { seconds, seed, planted } = options;
  const fault = planted === undefined ? undefined : plantedFaultOf(planted);
  const isFound = () => fault !== undefined && recorder.findingsByKind.has(fault.finding);
  const ends: (() => unknown)[] = [];
  const t: Lifespan = { after: (end) => ends.unshift(end) };
  const recorder = new Recorder();
  try {
    const { world, other } = await startWorld(t, options, recorder);
    const { url } = await startRoundRobin(t, () => world.replicas.targets);
    const targets: readonly SoakTarget[] = [
      { chain: world.chain, url: `${url}/main` },
      { chain: other, url: `${url}/other` },
    ];
    const ending = new AbortController();
    const { signal } = ending;
    const dispatcher = new Agent({ connections: 32 });
    t.after(() => dispatcher.destroy());
    let clients = 0;
    const optionsOf = (): ClientOptions => ({
      ...{ targets, recorder, dispatcher, signal, life: fault === undefined ? LIFE : PLANTED_LIFE },
      random: createRandomBelow(seed * 1_000 + clients++),
    });
    const running = [
      build(world.chain, world.change, createRandomBelow(seed + 1), signal),
      mine(other, createRandomBelow(seed + 2), signal),
      runFaults(world, options.faults ?? fault?.faults, recorder, signal),
      ...Array.from({ length: HTTP_CLIENTS }, () => runHttpClient(optionsOf(), false)),
      ...Array.from({ length: BATCH_CLIENTS }, () => runHttpClient(optionsOf(), true)),
      ...Array.from({ length: SOCKET_CLIENTS }, () => runSocketClient(optionsOf())),
      runFilterClient(optionsOf(), "blockFilter"),
      runFilterClient(optionsOf(), "logFilter"),
    ];
    const failed = Promise.all(running);
    const startMs = performance.now();
    const heaps: Readonly<Record<string, number>>[] = [];
    let compared: Readonly<Record<string, number>> | undefined;
    while (performance.now() < startMs + seconds * 1_000 && !isFound()) {
      if (performance.now() >= startMs + heaps.length * HEAP_PERIOD_MS) {
        heaps.push(await world.replicas.heaps());
      }
      if (compared === undefined && performance.now() >= startMs + comparedFromMs(seconds)) {
        compared = await world.replicas.heaps();
      }
      await Promise.race([sleep(CHECK_MS), failed]);
    }
    const heapGrowth = fault === undefined ? growthOf(compared ?? {}, await world.replicas.heaps()) : {};
    if (seconds * 1_000 - comparedFromMs(seconds) >= MIN_COMPARED_MS) {
      for (const [name, bytes] of Object.entries(heapGrowth).filter(([, bytes]) => bytes > MAX_HEAP_GROWTH_BYTES)) {
        recorder.find("heap", `${name} grew by ${bytes} bytes`);
      }
    }
    ending.abort();
    await Promise.race([failed, sleep(END_MS, undefined, { ref: false }).then(throwStuck)]);
    const passed = fault === undefined ? recorder.findings.length + recorder.shortfalls().length === 0 : isFound();
    return { passed, seed, seconds, planted, blocks: world.chain.head.number, heaps, heapGrowth, ...recorder.report() };
  } finally {
    for (const end of ends) {
      await end();
    }
  }
};
