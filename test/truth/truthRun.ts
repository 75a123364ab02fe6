import { setTimeout as sleep } from "node:timers/promises";
import type { Lifespan } from "../support/servers/redis.ts";
import { withLifespan } from "../support/servers/withLifespan.ts";
import type { Load } from "../world/clients/clientOptions.ts";
import { runClients } from "../world/clients/clients.ts";
import { Recorder, type ScoreReport } from "../world/judge/recorder.ts";
import type { TestedProxy } from "../world/proxies/proxy.ts";
import { runScenario, type Scenario } from "../world/scenarios/scenario.ts";
import { SCENARIOS } from "../world/scenarios/scenarios.ts";
import { countCalls, startWorld, untilBlocks, type World } from "../world/world.ts";

export interface TruthOptions {
  readonly proxy: TestedProxy;
  readonly seconds: number;
  /** Each scenario ends after this number of blocks instead. A late answer is not wrong then. */
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

const MAX_FEEDS = 2;
/** The lag that the judge allows after a reorganisation has begun. Otherwise, it allows a second. */
const MAX_LAG_MS = 2_500;
/** The same for a run of steps. Answers are still at least as new as the newest head that the replica had shown before. */
const MAX_LAG_OF_STEPS_MS = 60_000;
/** A scenario alone takes this time at least. */
const MIN_ALONE_SECONDS = 8;
/** The share of a run in which the scenarios follow each other on one chain and one proxy. */
const IN_TURN_SHARE = 0.25;
/** Filters last as long as their scenario. */
const LIFE_MS = 86_400_000;
const LOAD: Load = { sockets: 0, pace: 1, life: { minMs: LIFE_MS, maxMs: LIFE_MS } };

/** Runs a scenario in a world, and returns what its clients saw. */
const score = async (world: World, scenario: Scenario, seed: number, over: Promise<unknown>): Promise<ScoreReport> => {
  const recorder = new Recorder();
  const ending = new AbortController();
  const before = countCalls(world);
  const target = { chain: world.chain, instances: () => world.proxy.instances() };
  const clients = runClients({ targets: [target], recorder, seed, load: LOAD }, ending.signal);
  try {
    await runScenario(world, scenario, Promise.race([over, clients]));
  } finally {
    ending.abort();
    await clients;
  }
  const after = countCalls(world);
  return recorder.score(after.calls - before.calls, after.units - before.units);
};

const startTruthWorld = async (
  t: Lifespan,
  { proxy, seed, steps }: TruthOptions,
  shape: { readonly feeds: number; readonly replicas: number },
): Promise<World> => {
  const maxLagMs = steps === undefined ? MAX_LAG_MS : MAX_LAG_OF_STEPS_MS;
  const world = await startWorld(t, { proxy, seed, maxLagMs, ...shape });
  if (steps !== undefined) {
    // Without a fault, less lag is allowed.
    world.chain.lagBound.beginFault();
  }
  return world;
};

const untilOver = ({ chain }: World, { steps }: TruthOptions, seconds: number): Promise<void> =>
  steps === undefined ? sleep(seconds * 1_000) : untilBlocks(chain, steps);

/** The scenarios one after the other, on one chain and with one proxy, which has all that it offers. */
const runInTurn = (options: TruthOptions, scenarios: readonly Scenario[], seconds: number): Promise<TruthRow[]> =>
  withLifespan(async (t) => {
    const { offers } = options.proxy;
    const world = await startTruthWorld(t, options, {
      feeds: offers.has("feed") ? MAX_FEEDS : 0,
      replicas: offers.has("replicas") ? 2 : 1,
    });
    const rows: TruthRow[] = [];
    for (const [index, scenario] of scenarios.entries()) {
      const over = untilOver(world, options, seconds / scenarios.length);
      rows.push({ scenario: scenario.name, score: await score(world, scenario, options.seed + index, over) });
    }
    return rows;
  });

const runAlone = (options: TruthOptions, scenario: Scenario, seconds: number): Promise<TruthRow> =>
  withLifespan(async (t) => {
    const { name, needs, feeds = 1 } = scenario;
    const world = await startTruthWorld(t, options, {
      feeds: needs === "feed" ? feeds : 0,
      replicas: needs === "replicas" || needs === "redis" ? 2 : 1,
    });
    return { scenario: name, score: await score(world, scenario, options.seed, untilOver(world, options, seconds)) };
  });

/** Runs the scenarios, and judges each answer of the proxy. */
export const runTruth = async (options: TruthOptions): Promise<TruthReport> => {
  const { proxy, seconds, steps, seed, scenario } = options;
  const chosen = SCENARIOS.filter(({ name }) => scenario === undefined || name === scenario);
  const isOffered = ({ needs }: Scenario): boolean => needs === undefined || proxy.offers.has(needs);
  const offered = chosen.filter(isOffered);
  const aloneSeconds = scenario === undefined ? (seconds * (1 - IN_TURN_SHARE)) / offered.length : seconds;
  const isLong = steps === undefined && aloneSeconds >= MIN_ALONE_SECONDS;
  const areAlone = scenario !== undefined || (!proxy.isForeign && isLong);
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
