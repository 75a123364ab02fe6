import { setTimeout as sleep } from "node:timers/promises";
import { withLifespan } from "../support/servers/withLifespan.ts";
import { RECOVERY_MS } from "../world/chain/lagBound.ts";
import type { TruthChain } from "../world/chain/truthChain.ts";
import type { Load } from "../world/clients/clientOptions.ts";
import { runClients } from "../world/clients/clients.ts";
import { Recorder } from "../world/judge/recorder.ts";
import { SOAK_FAULTS } from "../world/planted/soakFaults.ts";
import { createForebayProxy } from "../world/proxies/forebayProxy.ts";
import { runScenario, type Scenario } from "../world/scenarios/scenario.ts";
import { SCENARIOS } from "../world/scenarios/scenarios.ts";
import { countCalls, startWorld, type World } from "../world/world.ts";

export interface SoakOptions {
  readonly seconds: number;
  readonly seed: number;
  /** Name of a planted fault. The run ends as soon as it is found. */
  readonly planted?: string | undefined;
  /** Names of the only scenarios. Default: all. */
  readonly scenarios?: readonly string[] | undefined;
}

const CHECK_MS = 100;
/** Time in which all clients end, the start of a killed replica included. */
const END_MS = 60_000;
const FEEDS = 2;
const LOAD: Load = { sockets: 3, pace: 4, life: { minMs: 8_000, maxMs: 40_000 } };
/** Longer than the longest allowed lag: later events of a subscription are not judged. */
const PLANTED_LOAD: Load = { ...LOAD, life: { minMs: 9_000, maxMs: 12_000 } };
const HEAP_PERIOD_MS = 60_000;
/** Heaps are compared from this time, or from a third of a shorter run. */
const COMPARED_FROM_MS = 600_000;
/** Between the tenth minute and the end. Shorter runs only print the growth. */
const MAX_HEAP_GROWTH_BYTES = 5 * 1024 * 1024;
const MIN_COMPARED_MS = 600_000;

const FAULT_MS = 2_500;
const MAX_PAUSE_MS = 1_500;
/** After this number of faults comes a quiet window, in which the bounds without a fault judge the answers. */
const FAULTS_A_WINDOW = 3;
const QUIET_MS = 5_000;

const throwStuck = (): never => {
  throw new Error("a client did not end");
};

/** Returns the pause after a fault. `delays` counts the faults that delay forebay, this one included. */
const pauseMs = (delays: number, isPrompt: boolean, random: (below: number) => number): number =>
  !isPrompt && delays % FAULTS_A_WINDOW === 0 ? RECOVERY_MS + QUIET_MS : random(MAX_PAUSE_MS);

/** Allows a longer lag on all chains. Returns the function that ends it. */
const allowLag = (chains: readonly TruthChain[]): (() => void) => {
  const ends = chains.map(({ lagBound }) => lagBound.beginFault());
  return () => {
    for (const end of ends) {
      end();
    }
  };
};

/** Runs one scenario after the other in random order. Each is run once before one is repeated. */
const mix = async (
  world: World,
  scenarios: readonly Scenario[],
  recorder: Recorder,
  isExcluded: (scenario: Scenario) => boolean,
  signal: AbortSignal,
): Promise<void> => {
  const { random } = world;
  let waiting: Scenario[] = [];
  let delays = 0;
  const pause = (ms: number): Promise<void> => sleep(ms, undefined, { signal }).catch(() => undefined);
  while (!signal.aborted && scenarios.length > 0) {
    waiting = waiting.length === 0 ? [...scenarios] : waiting;
    const [scenario] = waiting.splice(random(waiting.length), 1);
    if (scenario === undefined || isExcluded(scenario)) {
      await pause(CHECK_MS);
      continue;
    }
    const { name, isPrompt = false } = scenario;
    const endLag = isPrompt ? undefined : allowLag([world.chain, world.other]);
    recorder.beginFault(name);
    await runScenario(world, scenario, pause(FAULT_MS));
    recorder.endFault(name);
    endLag?.();
    delays += isPrompt ? 0 : 1;
    await pause(pauseMs(delays, isPrompt, random));
  }
};

const comparedFromMs = (seconds: number): number => Math.min(COMPARED_FROM_MS, (seconds * 1_000) / 3);

type Heaps = Readonly<Record<string, number>>;

/** Returns the growth of each heap between two measurements, in bytes, by replica. Replicas that ended in between are left out. */
const growthOf = (first: Heaps, last: Heaps): Heaps =>
  Object.fromEntries(
    Object.entries(first).flatMap(([name, bytes]) => (name in last ? [[name, (last[name] ?? 0) - bytes]] : [])),
  );

/** Measures heaps until the time is over, or `isFound`. Returns them, and their growth. */
const watch = async (
  heapsNow: () => Promise<Heaps>,
  seconds: number,
  isFound: () => boolean,
  failed: Promise<unknown>,
): Promise<{ readonly heaps: readonly Heaps[]; readonly heapGrowth: Heaps }> => {
  const startMs = performance.now();
  const heaps: Heaps[] = [];
  let compared: Heaps | undefined;
  while (performance.now() < startMs + seconds * 1_000 && !isFound()) {
    if (performance.now() >= startMs + heaps.length * HEAP_PERIOD_MS) {
      heaps.push(await heapsNow());
    }
    if (compared === undefined && performance.now() >= startMs + comparedFromMs(seconds)) {
      compared = await heapsNow();
    }
    await Promise.race([sleep(CHECK_MS), failed]);
  }
  return { heaps, heapGrowth: compared === undefined ? {} : growthOf(compared, await heapsNow()) };
};

/** Mixes the scenarios until the time is over, and compares each answer and event with the record. */
export const runSoak = ({ seconds, seed, planted, scenarios }: SoakOptions) =>
  withLifespan(async (t) => {
    const fault = SOAK_FAULTS[planted ?? ""];
    if (planted !== undefined && fault === undefined) {
      throw new Error(`no fault is called "${planted}": ${Object.keys(SOAK_FAULTS).join(", ")}`);
    }
    const recorder = new Recorder();
    const isFound = () => fault !== undefined && recorder.count(fault.finding) > 0;
    // A heap is compared once its process has filled its tables.
    const keptMs = performance.now() + comparedFromMs(seconds) / 2;
    const world = await startWorld(t, {
      ...{ proxy: createForebayProxy({ planted, hasSmallCaches: true }), seed },
      ...{ feeds: FEEDS, replicas: 2, hasOther: true },
      onUnexpectedEnd: (text) => recorder.find("ended", text),
    });
    const { proxy } = world;
    const ending = new AbortController();
    const { signal } = ending;
    const isChosen = ({ name, finds }: Scenario): boolean =>
      scenarios?.includes(name) ?? (planted === undefined || finds?.includes(planted) === true);
    const running = Promise.all([
      runClients(
        {
          targets: [
            { chain: world.chain, instances: () => proxy.instances() },
            { chain: world.other, instances: () => proxy.instances(true) },
          ],
          ...{ recorder, seed, load: fault === undefined ? LOAD : PLANTED_LOAD },
        },
        signal,
      ),
      mix(
        world,
        SCENARIOS.filter(isChosen),
        recorder,
        ({ needs }) => needs === "restart" && performance.now() >= keptMs,
        signal,
      ),
    ]);
    const { heaps, heapGrowth } = await watch(() => proxy.replicas.heaps(), seconds, isFound, running);
    if (seconds * 1_000 - comparedFromMs(seconds) >= MIN_COMPARED_MS) {
      for (const [name, bytes] of Object.entries(heapGrowth).filter(([, bytes]) => bytes > MAX_HEAP_GROWTH_BYTES)) {
        recorder.find("heap", `${name} grew by ${bytes} bytes`);
      }
    }
    ending.abort();
    await Promise.race([running, sleep(END_MS, undefined, { ref: false }).then(throwStuck)]);
    const passed = fault === undefined ? recorder.findings.length + recorder.shortfalls().length === 0 : isFound();
    const { calls, units } = countCalls(world);
    return {
      ...{ passed, seed, seconds, planted, blocks: world.chain.head.number, heaps, heapGrowth },
      ...{ ...recorder.report(), ...recorder.score(calls, units) },
    };
  });
