import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent } from "undici";
import { createUnitsOf } from "../../src/access/providerUnits.ts";
import { createFeedServer } from "../devnet/feedServer.ts";
import { createRandomBelow } from "../support/builders/randomValues.ts";
import type { Lifespan } from "../support/servers/redis.ts";
import { BLOCK_MS } from "../world/chain/blockTime.ts";
import { TruthChain } from "../world/chain/truthChain.ts";
import { createTurns } from "../world/chain/turns.ts";
import { runClients } from "../world/clients/clients.ts";
import { startTruthNode, type TruthNode } from "../world/nodes/truthNode.ts";
import type { RunningProxy, TruthProxy } from "../world/proxies/proxy.ts";
import { MESSAGES_A_BLOCK, SCENARIOS, type Scenario, type ScenarioWorld } from "../world/scenarios/scenarios.ts";
import { Score, type ScoreReport } from "./score.ts";

export interface TruthOptions {
  readonly proxy: TruthProxy;
  readonly seconds: number;
  /** The scenario ends after this number of blocks instead. A late answer is not wrong then. */
  readonly steps?: number | undefined;
  readonly seed: number;
  /** Default: all, one after the other. */
  readonly scenario?: string | undefined;
}

/** One row of the table. Without values, the proxy does not offer what the scenario needs. */
export interface TruthRow {
  readonly scenario: string;
  readonly score?: ScoreReport;
}

export interface TruthReport {
  readonly proxy: string;
  readonly version: string;
  readonly seed: number;
  readonly seconds: number;
  /** Whether each scenario had a chain and a proxy of its own. Short runs have one of both for all scenarios. */
  readonly areAlone: boolean;
  readonly rows: readonly TruthRow[];
}

/** nodecore only knows the names of public chains. */
const CHAIN_ID = 1;
const OTHER_CHAIN_ID = 902;
const NODES = 3;
const MAX_FEEDS = 2;
/** The lag that the oracle allows after a reorganisation has begun. Otherwise, it allows a second. */
const MAX_LAG_MS = 2_500;
/** The same for a run of steps. Answers are still at least as new as the newest head that the replica had shown before. */
const MAX_LAG_OF_STEPS_MS = 60_000;
/** Clients start when the proxy has seen some blocks. */
const WARM_MS = 1_500;
/** A scenario alone takes this time at least. */
const MIN_ALONE_SECONDS = 8;
/** The share of a run in which the scenarios follow each other on one chain and one proxy. */
const IN_TURN_SHARE = 0.25;

const unitsOf = createUnitsOf();

const countCalls = (nodes: readonly TruthNode[]): { readonly calls: number; readonly units: number } => {
  let [count, units] = [0, 0];
  for (const [method, calls] of nodes.flatMap((node) => [...node.calls])) {
    count += calls;
    units += calls * unitsOf(method);
  }
  return { calls: count, units };
};

/** Seals a block in each block time, after its messages in the feed. */
const build = async (
  { chain, change }: Pick<ScenarioWorld, "chain" | "change">,
  isFeeding: boolean,
  random: (below: number) => number,
  signal: AbortSignal,
): Promise<void> => {
  const messages = isFeeding ? MESSAGES_A_BLOCK : 1;
  const startMs = performance.now();
  for (let count = 1; !signal.aborted; count++) {
    await (isFeeding ? change(() => chain.step(random(3))) : undefined);
    await sleep(Math.max(0, startMs + (count * BLOCK_MS) / messages - performance.now()));
    if (count % messages === 0) {
      await change(() => (isFeeding ? chain.seal() : chain.mine(random(3))));
    }
  }
};

interface World extends ScenarioWorld {
  readonly proxy: RunningProxy;
}

type WorldShape = { readonly feeds: number; readonly replicas: number };

const startWorld = async (
  t: Lifespan,
  { proxy, seed, steps }: TruthOptions,
  shape: WorldShape,
): Promise<Omit<World, "repeat">> => {
  const ending = new AbortController();
  const chain = await TruthChain.create(CHAIN_ID, seed, steps === undefined ? MAX_LAG_MS : MAX_LAG_OF_STEPS_MS);
  if (steps !== undefined) {
    // Without a fault, less lag is allowed.
    chain.lagBound.beginFault();
  }
  const other = await TruthChain.create(OTHER_CHAIN_ID, seed, MAX_LAG_MS);
  t.after(() => {
    chain.lagBound.close();
    other.lagBound.close();
  });
  const nodes: TruthNode[] = [];
  for (let count = 0; count < NODES; count++) {
    nodes.push(await startTruthNode(t, chain));
  }
  const [feed, otherFeed] = [await createFeedServer("text"), await createFeedServer("text")];
  t.after(() => Promise.all([feed.close(), otherFeed.close()]));
  chain.events.on("message", feed.send);
  const change = createTurns();
  const building = build({ chain, change }, shape.feeds > 0, createRandomBelow(seed + 1), ending.signal);
  t.after(() => {
    ending.abort();
    return building;
  });
  const started = await proxy.start(t, {
    ...{ chainId: CHAIN_ID, nodeUrls: nodes.map(({ url }) => url) },
    feedUrls: [feed.url, otherFeed.url].slice(0, shape.feeds),
    replicas: shape.replicas,
  });
  await sleep(WARM_MS);
  return {
    ...{ chain, other, nodes, change, proxy: started },
    ...{ feed: feed.faults, otherFeed: otherFeed.faults },
    random: createRandomBelow(seed + 2),
    restart: started.restart,
  };
};

/** Waits for a number of new heads. */
const untilBlocks = async ({ events }: TruthChain, blocks: number): Promise<void> => {
  for (let block = 0; block < blocks; block++) {
    await once(events, "head");
  }
};

/** Runs a scenario in a world, and returns what its clients saw. Nodes are honest again at its end. */
const runScenario = async (
  world: Omit<World, "repeat">,
  { begin }: Scenario,
  seed: number,
  { seconds, steps }: Pick<TruthOptions, "seconds" | "steps">,
): Promise<ScoreReport> => {
  const score = new Score(world.chain);
  const ending = new AbortController();
  const { signal } = ending;
  const dispatcher = new Agent({ connections: 64 });
  const acting: Promise<void>[] = [];
  const repeat: ScenarioWorld["repeat"] = (periodMs, act) => {
    const run = async (): Promise<void> => {
      while (!signal.aborted) {
        await act();
        await sleep(periodMs, undefined, { signal }).catch(() => undefined);
      }
    };
    acting.push(run());
  };
  const before = countCalls(world.nodes);
  try {
    begin({ ...world, repeat });
    const running = runClients({ chain: world.chain, score, seed, urls: world.proxy.urls, dispatcher, signal });
    const failed = Promise.all([running, ...acting]);
    await Promise.race([steps === undefined ? sleep(seconds * 1_000) : untilBlocks(world.chain, steps), failed]);
    ending.abort();
    await failed;
  } finally {
    ending.abort();
    for (const node of world.nodes) {
      node.fault = undefined;
    }
    await dispatcher.destroy();
  }
  const after = countCalls(world.nodes);
  return score.report(after.calls - before.calls, after.units - before.units);
};

/** Runs `use`, and then ends all that it has started. */
const withLifespan = async <T>(use: (t: Lifespan) => Promise<T>): Promise<T> => {
  const ends: (() => unknown)[] = [];
  try {
    return await use({ after: (end) => ends.unshift(end) });
  } finally {
    for (const end of ends) {
      await end();
    }
  }
};

/** The scenarios one after the other, on one chain and with one proxy, which has all that it offers. */
const runInTurn = (options: TruthOptions, scenarios: readonly Scenario[], seconds: number): Promise<TruthRow[]> =>
  withLifespan(async (t) => {
    const { offers } = options.proxy;
    const shape = {
      feeds: offers.has("feed") ? MAX_FEEDS : 0,
      replicas: offers.has("replicas") ? 2 : 1,
    };
    const world = await startWorld(t, options, shape);
    const rows: TruthRow[] = [];
    for (const [index, scenario] of scenarios.entries()) {
      const score = await runScenario(world, scenario, options.seed + index, {
        seconds: seconds / scenarios.length,
        steps: undefined,
      });
      rows.push({ scenario: scenario.name, score });
    }
    return rows;
  });

const runAlone = (options: TruthOptions, scenario: Scenario, seconds: number): Promise<TruthRow> =>
  withLifespan(async (t) => {
    const shape = {
      feeds: scenario.needs === "feed" ? (scenario.feeds ?? 1) : 0,
      replicas: scenario.needs === "replicas" ? 2 : 1,
    };
    const world = await startWorld(t, options, shape);
    const { steps } = options;
    return { scenario: scenario.name, score: await runScenario(world, scenario, options.seed, { seconds, steps }) };
  });

/** Runs the scenarios, and judges each answer of the proxy. */
export const runTruth = async (options: TruthOptions): Promise<TruthReport> => {
  const { proxy, seconds, seed, scenario } = options;
  const chosen = SCENARIOS.filter(({ name }) => scenario === undefined || name === scenario);
  const isOffered = ({ needs }: Scenario): boolean => needs === undefined || proxy.offers.has(needs);
  const offered = chosen.filter(isOffered);
  const aloneSeconds = scenario === undefined ? (seconds * (1 - IN_TURN_SHARE)) / offered.length : seconds;
  const areAlone = scenario !== undefined || (!proxy.isForeign && aloneSeconds >= MIN_ALONE_SECONDS);
  const rows: TruthRow[] = [];
  if (areAlone) {
    for (const each of offered) {
      rows.push(await runAlone(options, each, aloneSeconds));
    }
  }
  if (scenario === undefined) {
    const inTurn = await runInTurn(options, offered, areAlone ? seconds * IN_TURN_SHARE : seconds);
    rows.push(...inTurn.map((row) => (areAlone ? { ...row, scenario: `${row.scenario}, in turn` } : row)));
  }
  rows.push(...chosen.filter((each) => !isOffered(each)).map(({ name }) => ({ scenario: name })));
  return { proxy: proxy.name, version: proxy.version, seed, seconds, areAlone, rows };
};
