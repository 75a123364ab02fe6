import { setTimeout as sleep } from "node:timers/promises";
import { createRandom, pick } from "../support/builders/randomValues.ts";
import { rpc } from "../support/clients/rpc.ts";
import { type Lifespan, startRedis } from "../support/servers/redis.ts";
import { type RedisFault, redisFaults } from "../support/servers/redisFaults.ts";
import { type SlowProxy, startSlowProxy } from "../support/servers/slowProxy.ts";
import { withLifespan } from "../support/servers/withLifespan.ts";
import { ComparedReads, type ReadKind, type ReadTally } from "../world/judge/comparedReads.ts";
import { createCallReads } from "../world/judge/randomCalls.ts";
import { createStateReads } from "../world/judge/stateReads.ts";
import type { RandomStateBlocks } from "../world/state/randomStateBlocks.ts";
import type { StandInChain } from "../world/state/standInChain.ts";
import { createStateChain } from "../world/state/stateChain.ts";
import { runKilledHolder } from "./support/killedHolder.ts";
import { LeaseTakeover } from "./support/leaseTakeover.ts";
import type { LongOptions } from "./support/longOptions.ts";
import { LIED, type SharedReplica, startSharedReplicas } from "./support/sharedReplicas.ts";
import { foundByService, stateCounts } from "./support/stateCounts.ts";

const WHOLE_SECONDS = 240;
const FIRST_BLOCKS = 300;
const BLOCK_MS = 400;
const MAX_REORG = 64;
/** Blocks until values are known, another branch, blocks, a deep reorganisation: a short run has them too. */
const FIRST_STEPS = [1, 1, 1, 1, 1, 0.2, 1, 1, 1, 0];
const TAKEN_SHARE = 0.2;
const SLOW_MS = 200;
/** Between two batches of a client, so that the replicas share the cores with their nodes. */
const PAUSE_MS = 20;
const STATE_CLIENTS = 1;
const MAX_LAG_MS = 2_000;
const CHECK_MS = 20;
/** Of a phase without a fault of Redis, and of one with a fault. */
const MAX_PHASE_MS = 4_000;
/** The part of the time before the first fault. */
const QUIET_SHARE = 0.3;
const FINAL_DEPTH = 205;
const DEFAULT_SEED = 1;
/** `VARIANT=text` selects variants by a part of their name, `SEED=n` other blocks and reads. */
const only = process.env.VARIANT;
const seed = Number(process.env.SEED ?? DEFAULT_SEED);
const isPlanted = process.env.PLANTED !== undefined;

const VARIANTS = [
  { name: "trace", source: "trace", fork: "prague" },
  { name: "access list", source: "accessList", fork: "amsterdam" },
] as const;

type Variant = (typeof VARIANTS)[number];

/** Waits until the replicas serve the newest block, for a time: a busy machine gets blocks as fast as it can follow. */
const untilServed = async (chain: StandInChain, replicas: readonly SharedReplica[], signal: AbortSignal) => {
  const endMs = performance.now() + MAX_LAG_MS;
  const isServed = ({ service }: SharedReplica): boolean =>
    service.chains[0]?.upstreams.heads.current()?.latest.hash === chain.head.hash;
  while (!signal.aborted && performance.now() < endMs && !replicas.every(isServed)) {
    await sleep(PAUSE_MS);
  }
};

/** How far a run is: its steps are changes of the chain. */
interface Progress {
  steps: number;
}

/** Mines blocks, replaces some, and leaves one node on another branch for a time, until the signal aborts. */
const drive = async (
  chain: StandInChain,
  blocks: RandomStateBlocks,
  replicas: readonly SharedReplica[],
  progress: Progress,
  signal: AbortSignal,
) => {
  const random = createRandom(seed + 1);
  const counts = { reorganisations: 0, branches: 0 };
  const mine = async (count: number): Promise<void> => {
    for (let index = 0; index < count; index++) {
      await blocks.mine();
    }
  };
  for (; !signal.aborted; progress.steps++) {
    const chance = FIRST_STEPS[progress.steps] ?? random();
    if (chance < 0.15) {
      const depth = 1 + Math.floor(random() * (chance < 0.03 ? MAX_REORG : 4));
      chain.rewind(depth);
      await mine(depth + Math.floor(random() * 2));
      counts.reorganisations++;
    } else if (chance < 0.25) {
      const { node } = pick(random, replicas);
      const depth = 1 + Math.floor(random() * 4);
      await mine(depth);
      await sleep(random() * BLOCK_MS);
      node.head = chain.head;
      chain.rewind(depth);
      for (let index = 0; index < depth + 2 && !signal.aborted; index++) {
        await mine(1);
        await sleep(random() * 2 * BLOCK_MS);
      }
      node.head = undefined;
      counts.branches++;
    } else {
      await mine(1);
      await untilServed(chain, replicas, signal);
    }
    await sleep(random() * 2 * BLOCK_MS);
  }
  return counts;
};

/** Also those of a Redis that is only flushed or slow. */
const faultsWith = (proxy: SlowProxy): readonly RedisFault[] => [
  { name: "flushed", begin: async ({ admin }) => void (await admin.flushall()), end: async () => undefined },
  ...redisFaults,
  {
    name: "slow",
    begin: async () => {
      proxy.delayMs = SLOW_MS;
    },
    end: async () => {
      proxy.delayMs = 0;
    },
  },
];

/** Sends batches until the signal aborts. */
const compare = async <Read>(compared: ComparedReads<Read>, signal: AbortSignal): Promise<void> => {
  while (!signal.aborted) {
    await compared.compareOnce();
    await sleep(PAUSE_MS);
  }
};

/** Reads what the lying node lies about, at the head and at final blocks, whose answers are in Redis. Returns the number of lies. */
const readLies = async (chain: StandInChain, { service }: SharedReplica, signal: AbortSignal): Promise<number> => {
  const random = createRandom(seed + 2);
  let lies = 0;
  while (!signal.aborted) {
    const address = pick(random, LIED);
    const number = chain.height - FINAL_DEPTH - Math.floor(random() * 40);
    const block = chain.at(number);
    const { body } = await rpc(service.url, "eth_getBalance", [address, `0x${number.toString(16)}`]);
    await rpc(service.url, "eth_getBalance", [address, "latest"]);
    if (block !== undefined && body.result === `0x${(chain.stateAt(block.hash).balance(address) + 1n).toString(16)}`) {
      lies++;
    }
    await sleep(PAUSE_MS);
  }
  return lies;
};

/** The reads about which no node lies. */
const withoutLies = (kind: ReturnType<typeof createStateReads>): typeof kind => ({
  ...kind,
  draw: (random, height) => {
    for (;;) {
      const read = kind.draw(random, height);
      if (read.method !== "eth_getBalance" || !LIED.includes(read.params[0])) {
        return read;
      }
    }
  },
});

interface Judged {
  readonly service: SharedReplica["service"];
  readonly tallies: readonly ReadTally[];
}

const describe = async ({ service, tallies }: Judged) => {
  const sum = (field: "comparisons" | "repeated" | "skipped") =>
    tallies.reduce((total, tally) => total + tally[field], 0);
  return {
    ...{ comparisons: sum("comparisons"), repeated: sum("repeated"), skipped: sum("skipped") },
    errors: tallies.flatMap(({ errors }) => errors),
    differences: tallies.flatMap(({ differences }) => differences).length,
    ...(await stateCounts(service)),
  };
};

/** Starts the replicas with a chain and a Redis. */
const startRig = async (t: Lifespan, { source, fork }: Variant) => {
  const { chain, blocks } = await createStateChain({ fork, seed, length: FIRST_BLOCKS });
  const redis = await startRedis(t);
  const proxy = await startSlowProxy(t, redis.port);
  const takeover = new LeaseTakeover(redis, createRandom(seed + 3), TAKEN_SHARE);
  const redisUrl = `redis://127.0.0.1:${proxy.port}`;
  const options = { chain, redisUrl, source, blockMs: BLOCK_MS };
  const replicas = await startSharedReplicas(t, { ...options, onSource: takeover.lie });
  return { chain, blocks, redis, proxy, takeover, options, ...replicas };
};

type Rig = Awaited<ReturnType<typeof startRig>>;

/** Sends reads and calls to the replicas until the signal aborts. What the lying node says is not compared. */
const startClients = ({ chain, honest, lying }: Rig, signal: AbortSignal) => {
  const stateReads = createStateReads(chain);
  const callReads = createCallReads(chain, createRandom(seed));
  const running: Promise<void>[] = [];
  const judge = <Read>({ service }: SharedReplica, kind: ReadKind<Read>, clients: number): ReadTally => {
    const compared = new ComparedReads(chain, service, kind, seed + running.length);
    running.push(...Array.from({ length: clients }, () => compare(compared, signal)));
    return compared.tally;
  };
  const ofHonest = honest.map((replica) => ({
    service: replica.service,
    tallies: [judge(replica, stateReads, STATE_CLIENTS), judge(replica, callReads, 1)],
  }));
  const ofLying = { service: lying.service, tallies: [judge(lying, withoutLies(stateReads), STATE_CLIENTS)] };
  return { judged: [...ofHonest, ofLying], ended: Promise.all(running) };
};

/** Injects one fault of Redis after the other until the run is over. Returns their number. A phase has a time, or is one step. */
const injectFaults = async (
  { redis, proxy, takeover }: Rig,
  { seconds, steps }: Length,
  progress: Progress,
  isFound: () => boolean,
) => {
  const faults = faultsWith(proxy);
  const now = () => (steps === undefined ? performance.now() : progress.steps);
  const all = steps ?? seconds * 1_000;
  const phase = steps === undefined ? Math.min(MAX_PHASE_MS, ((1 - QUIET_SHARE) * all) / (2 * faults.length)) : 1;
  const end = now() + all;
  const isOver = () => now() >= end || isFound();
  const pause = async (length = phase): Promise<void> => {
    const until = now() + length;
    while (now() < until && !isOver()) {
      await sleep(CHECK_MS);
    }
  };
  await pause(QUIET_SHARE * all);
  for (let count = 0; ; count++) {
    await pause();
    const fault = faults[count % faults.length];
    if (isOver() || fault === undefined) {
      return count;
    }
    takeover.onFault();
    await fault.begin(redis);
    // A lease that was taken while the fault began may be lost.
    takeover.onFault();
    await pause();
    await fault.end(redis);
    takeover.onFault();
  }
};

interface Length {
  readonly seconds: number;
  readonly steps: number | undefined;
}

const runVariant = (variant: Variant, length: Length) =>
  withLifespan(async (t) => {
    const rig = await startRig(t, variant);
    const ending = new AbortController();
    const { signal } = ending;
    t.after(() => ending.abort());
    const { chain, blocks, honest, lying, takeover } = rig;
    const { judged, ended } = startClients(rig, signal);
    const progress = { steps: 0 };
    const driving = drive(chain, blocks, [...honest, lying], progress, signal);
    const killing = runKilledHolder(t, { ...rig.options, random: createRandom(seed + 4) }, signal);
    const telling = readLies(chain, lying, signal);
    const differences = () => [
      ...judged.flatMap(({ tallies }) => tallies.flatMap((tally) => tally.differences)),
      ...takeover.violations.map((lease) => ({ lease })),
    ];
    const faults = await injectFaults(rig, length, progress, () => isPlanted && differences().length > 0);
    ending.abort();
    const [driven, lies, kills] = await Promise.all([driving, telling, killing, ended]);
    const found = await Promise.all(honest.map(({ service }) => foundByService(service)));
    return {
      ...{ blocks: chain.height - FIRST_BLOCKS, ...driven, faults, takenLeases: takeover.taken, kills, lies },
      foundByService: found.reduce((sum, each) => sum + each, 0),
      differences: differences(),
      replicas: await Promise.all(judged.map(describe)),
    };
  });

export const takesSteps = true;

/**
 * Three replicas with one Redis: one node may be on another branch, and that of one replica lies. Redis has faults, and leases end
 * while their holders work. Compares each answer with the chain's record. No lie may reach another replica.
 * A step is a change of the chain.
 */
export const long = async ({ seconds, steps }: LongOptions) => {
  const chosen = VARIANTS.filter(({ name }) => only === undefined || name.includes(only));
  const each = (seconds ?? WHOLE_SECONDS) / chosen.length;
  const variants: Record<string, unknown> = {};
  let passed = true;
  let shared = 0;
  for (const variant of chosen) {
    const result = await runVariant(variant, { seconds: each, steps });
    console.log(variant.name, JSON.stringify(result));
    variants[variant.name] = result;
    const { differences, foundByService: found, lies, replicas } = result;
    passed &&= differences.length === 0 && found === 0 && (lies > 0 || steps !== undefined);
    shared += replicas.reduce((sum, { writeSets }) => sum + (writeSets.shared ?? 0), 0);
    passed &&= replicas.every(
      ({ comparisons, errors }) => comparisons > errors.length && (errors.length === 0 || steps !== undefined),
    );
  }
  // Without a shared write set, nothing was judged. A busy machine may share none in a short run.
  const isJudged = shared > 0 || seconds !== undefined || steps !== undefined;
  return {
    ...{ claim: "no replica has a wrong value from another one", seed, shared },
    ...{ variants, passed: passed && isJudged },
  };
};
