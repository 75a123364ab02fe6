import { setTimeout as sleep } from "node:timers/promises";
import { createRandom, pick } from "../support/builders/randomValues.ts";
import { rpc } from "../support/clients/rpc.ts";
import { ComparedReads, type ReadKind, type ReadTally } from "../support/servers/comparedReads.ts";
import { type Lifespan, startRedis } from "../support/servers/redis.ts";
import { type RedisFault, redisFaults } from "../support/servers/redisFaults.ts";
import { type SlowProxy, startSlowProxy } from "../support/servers/slowProxy.ts";
import { createCallReads } from "../support/standIn/randomCalls.ts";
import { RandomStateBlocks } from "../support/standIn/randomStateBlocks.ts";
import { StandInChain } from "../support/standIn/standInChain.ts";
import { createStateReads } from "../support/standIn/stateReads.ts";
import { LeaseTakeover } from "./support/leaseTakeover.ts";
import type { LongOptions } from "./support/memory.ts";
import { LIED, type SharedReplica, startSharedReplicas } from "./support/sharedReplicas.ts";
import { foundByService, stateCounts } from "./support/stateCounts.ts";

const WHOLE_SECONDS = 240;
const FIRST_BLOCKS = 300;
const BLOCK_MS = 400;
const MAX_REORG = 64;
const TAKEN_SHARE = 0.2;
const SLOW_MS = 200;
/** Between two batches of a client, so that the replicas share the cores with their nodes. */
const PAUSE_MS = 20;
const STATE_CLIENTS = 2;
const CHECK_MS = 200;
/** Of a phase without a fault of Redis, and of one with a fault. */
const MAX_PHASE_MS = 4_000;
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

/** Mines blocks, replaces some, and leaves one node on another branch for a time, until the signal aborts. */
const drive = async (
  chain: StandInChain,
  blocks: RandomStateBlocks,
  replicas: readonly SharedReplica[],
  signal: AbortSignal,
) => {
  const random = createRandom(seed + 1);
  const counts = { reorganisations: 0, branches: 0 };
  const mine = async (count: number): Promise<void> => {
    for (let index = 0; index < count; index++) {
      await blocks.mine();
    }
  };
  while (!signal.aborted) {
    const chance = random();
    if (chance < 0.15) {
      const depth = 1 + Math.floor(random() * (chance < 0.03 ? MAX_REORG : 4));
      chain.rewind(depth);
      await mine(depth + Math.floor(random() * 2));
      counts.reorganisations++;
    } else if (chance < 0.2) {
      const { view } = pick(random, replicas);
      const depth = 1 + Math.floor(random() * 4);
      await mine(depth);
      await sleep(random() * BLOCK_MS);
      view.stay();
      chain.rewind(depth);
      for (let index = 0; index < depth + 2 && !signal.aborted; index++) {
        await mine(1);
        await sleep(random() * 2 * BLOCK_MS);
      }
      view.follow();
      counts.branches++;
    } else {
      await mine(1);
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
  const chain = new StandInChain(fork);
  const blocks = new RandomStateBlocks(chain, seed);
  blocks.genesis();
  for (let index = 0; index < FIRST_BLOCKS; index++) {
    await blocks.mine();
  }
  const redis = await startRedis(t);
  const proxy = await startSlowProxy(t, redis.port);
  const takeover = new LeaseTakeover(redis, createRandom(seed + 3), TAKEN_SHARE);
  const redisUrl = `redis://127.0.0.1:${proxy.port}`;
  const options = { chain, redisUrl, source, onSource: takeover.lie, blockMs: BLOCK_MS };
  return { chain, blocks, redis, proxy, takeover, ...(await startSharedReplicas(t, options)) };
};

type Rig = Awaited<ReturnType<typeof startRig>>;

/** Sends reads and calls to the replicas until the signal aborts. What the lying node says is not compared. */
const startClients = ({ chain, honest, lying, execution }: Rig, signal: AbortSignal) => {
  const stateReads = createStateReads(chain);
  const callReads = createCallReads(chain, execution, createRandom(seed));
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

/** Injects one fault of Redis after the other until the run is over. Returns their number. */
const injectFaults = async ({ redis, proxy, takeover }: Rig, seconds: number, isFound: () => boolean) => {
  const faults = faultsWith(proxy);
  const phaseMs = Math.min(MAX_PHASE_MS, (seconds * 1_000) / (2 * faults.length));
  const endMs = performance.now() + seconds * 1_000;
  const isOver = () => performance.now() >= endMs || isFound();
  const pause = async (): Promise<void> => {
    const untilMs = performance.now() + phaseMs;
    while (performance.now() < untilMs && !isOver()) {
      await sleep(Math.min(CHECK_MS, phaseMs));
    }
  };
  for (let count = 0; ; count++) {
    await pause();
    const fault = faults[count % faults.length];
    if (isOver() || fault === undefined) {
      return count;
    }
    takeover.onFault();
    await fault.begin(redis);
    await pause();
    await fault.end(redis);
    takeover.onFault();
  }
};

const runVariant = async (variant: Variant, seconds: number) => {
  const ends: (() => unknown)[] = [];
  const ending = new AbortController();
  const { signal } = ending;
  try {
    const rig = await startRig({ after: (end) => ends.unshift(end) }, variant);
    const { chain, blocks, honest, lying, takeover } = rig;
    const { judged, ended } = startClients(rig, signal);
    const driving = drive(chain, blocks, [...honest, lying], signal);
    const telling = readLies(chain, lying, signal);
    const differences = () => [
      ...judged.flatMap(({ tallies }) => tallies.flatMap((tally) => tally.differences)),
      ...takeover.violations.map((lease) => ({ lease })),
    ];
    const faults = await injectFaults(rig, seconds, () => isPlanted && differences().length > 0);
    ending.abort();
    const [driven, lies] = await Promise.all([driving, telling, ended]);
    const found = await Promise.all(honest.map(({ service }) => foundByService(service)));
    return {
      ...{ blocks: chain.height - FIRST_BLOCKS, ...driven, faults, takenLeases: takeover.taken, lies },
      foundByService: found.reduce((sum, each) => sum + each, 0),
      differences: differences(),
      replicas: await Promise.all(judged.map(describe)),
    };
  } finally {
    ending.abort();
    for (const end of ends) {
      await end();
    }
  }
};

/**
 * Three replicas with one Redis: one node may be on another branch, and that of one replica lies. Redis has faults, and leases end
 * while their holders work. Compares each answer with the chain's record. No lie may reach another replica.
 */
export const long = async ({ seconds }: LongOptions) => {
  const chosen = VARIANTS.filter(({ name }) => only === undefined || name.includes(only));
  const each = (seconds ?? WHOLE_SECONDS) / chosen.length;
  const variants: Record<string, unknown> = {};
  let passed = true;
  for (const variant of chosen) {
    const result = await runVariant(variant, each);
    console.log(variant.name, JSON.stringify(result));
    variants[variant.name] = result;
    const { differences, foundByService: found, lies, replicas } = result;
    passed &&= differences.length === 0 && found === 0 && lies > 0;
    passed &&= replicas.every(({ comparisons, errors }) => comparisons > 0 && errors.length === 0);
  }
  return { claim: "no replica has a wrong value from another one", seed, variants, passed };
};
