import { setTimeout as sleep } from "node:timers/promises";
import type { FeedFaults } from "../devnet/feedServer.ts";
import { HEAD_LIES } from "../support/fakes/headLies.ts";
import type { RedisServer } from "../support/servers/redis.ts";
import { RECOVERY_MS } from "../world/chain/lagBound.ts";
import type { TruthChain } from "../world/chain/truthChain.ts";
import type { Recorder } from "../world/judge/recorder.ts";
import type { TruthNode } from "../world/nodes/truthNode.ts";
import type { SoakReplicas } from "../world/proxies/forebayReplicas.ts";

/** All that the faults act on. */
export interface SoakWorld {
  readonly chain: TruthChain;
  readonly nodes: readonly TruthNode[];
  readonly feed: FeedFaults;
  readonly redis: RedisServer;
  readonly replicas: SoakReplicas;
  readonly random: (below: number) => number;
  /** The heaps of the running replicas will be compared, so that none may be killed. */
  readonly areReplicasKept: () => boolean;
  /** Allows a longer lag. Returns the function that ends it. */
  readonly allowLag: () => () => void;
  /** Runs a change of the chain between two blocks. */
  readonly change: (act: () => Promise<void>) => Promise<void>;
}

/** A fault that ends when `run` resolves. */
interface SoakFault {
  readonly name: string;
  readonly run: (world: SoakWorld) => Promise<void>;
  /** The chain changes, and nothing delays forebay. */
  readonly isOfChain?: true;
}

/** While Redis is paused, a new filter is local to its replica (docs/operate.md). */
export const PAUSED_REDIS = "paused Redis";
/** The deadline of the replicas: on a slow machine, only a paused Redis misses it. */
export const REDIS_TIMEOUT_MS = 500;
const FAULT_MS = 2_500;
const PAUSED_REDIS_MS = 1_500;
const SLOW_MS = 400;
const MAX_REORG = 8;
const MAX_LAG = 6;

const second = ({ nodes }: SoakWorld): TruthNode | undefined => nodes[1];

const SOAK_FAULTS: readonly SoakFault[] = [
  {
    name: "reorganisation",
    isOfChain: true,
    run: async ({ chain, change, random }) => {
      const depth = 1 + random(MAX_REORG);
      await change(() => chain.reorg(depth, depth + random(2)));
    },
  },
  {
    name: "reorganisation of one block",
    isOfChain: true,
    run: ({ chain, change }) => change(() => chain.reorg(1, 1)),
  },
  {
    name: "lying node",
    run: async (world) => {
      const node = second(world);
      const lie = HEAD_LIES[world.random(HEAD_LIES.length)];
      if (node !== undefined && lie !== undefined) {
        node.fault = { lies: [lie] };
        await sleep(FAULT_MS);
        node.fault = undefined;
      }
    },
  },
  {
    name: "lagging node",
    run: async (world) => {
      const node = second(world);
      if (node !== undefined) {
        const lag = 1 + world.random(MAX_LAG);
        node.fault = { lag: () => lag };
        await sleep(FAULT_MS);
        node.fault = undefined;
      }
    },
  },
  {
    name: "slow network",
    run: async ({ nodes, random }) => {
      const node = nodes[random(nodes.length)];
      if (node !== undefined) {
        node.delayMs = 50 + random(SLOW_MS);
        await sleep(FAULT_MS);
        node.delayMs = 0;
      }
    },
  },
  {
    name: "killed replica",
    run: async ({ replicas, random, areReplicasKept }) => {
      if (areReplicasKept()) {
        return;
      }
      const index = random(replicas.length);
      await replicas.kill(index);
      await replicas.launch(index);
    },
  },
  {
    name: "clock jump",
    run: async ({ replicas, random }) => {
      replicas.signal(random(replicas.length), "SIGUSR2");
      await sleep(FAULT_MS);
    },
  },
  {
    name: PAUSED_REDIS,
    run: async ({ redis }) => {
      redis.signal("SIGSTOP");
      await sleep(PAUSED_REDIS_MS);
      redis.signal("SIGCONT");
    },
  },
  {
    name: "lost feed messages",
    run: async ({ feed, random }) => {
      feed.drop(1 + random(4));
      await sleep(FAULT_MS / 2);
    },
  },
  {
    name: "repeated feed messages",
    run: async ({ feed, random }) => {
      feed.repeat(1 + random(4));
      await sleep(FAULT_MS / 2);
    },
  },
  {
    name: "delayed feed messages",
    run: async ({ feed, random }) => {
      feed.delay(100 + random(SLOW_MS), 1 + random(4));
      await sleep(FAULT_MS / 2);
    },
  },
  {
    name: "altered feed message",
    run: async ({ feed }) => {
      feed.alter((message) => ({ ...message, diff: { ...message.diff, gas_used: "0x1" } }));
      await sleep(FAULT_MS / 2);
    },
  },
  {
    name: "broken feed",
    run: async ({ feed }) => {
      feed.inject("{");
      feed.disconnect();
      await sleep(FAULT_MS / 2);
    },
  },
];

const MAX_PAUSE_MS = 1_500;
/** After this number of faults comes a quiet window, in which the bounds without a fault judge the answers. */
const FAULTS_A_WINDOW = 3;
const QUIET_MS = 5_000;

/** Returns the pause after a fault. `delays` counts the faults that delay forebay, this one included. */
const pauseMs = (delays: number, isOfChain: boolean, random: (below: number) => number): number =>
  !isOfChain && delays % FAULTS_A_WINDOW === 0 ? RECOVERY_MS + QUIET_MS : random(MAX_PAUSE_MS);

/** Runs one fault after the other in random order. Each fault is run once before one is repeated. */
export const runFaults = async (
  world: SoakWorld,
  names: readonly string[] | undefined,
  recorder: Recorder,
  signal: AbortSignal,
): Promise<void> => {
  const { random } = world;
  const chosen = SOAK_FAULTS.filter(({ name }) => names === undefined || names.includes(name));
  let waiting: SoakFault[] = [];
  let delays = 0;
  while (!signal.aborted && chosen.length > 0) {
    waiting = waiting.length === 0 ? [...chosen] : waiting;
    const [fault] = waiting.splice(random(waiting.length), 1);
    if (fault === undefined) {
      return;
    }
    const endLag = fault.isOfChain ? undefined : world.allowLag();
    recorder.beginFault(fault.name);
    await fault.run(world);
    recorder.endFault(fault.name);
    endLag?.();
    delays += fault.isOfChain ? 0 : 1;
    await sleep(pauseMs(delays, fault.isOfChain === true, random));
  }
};
