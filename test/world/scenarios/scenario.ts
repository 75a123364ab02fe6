import { setTimeout as sleep } from "node:timers/promises";
import type { FeedFaults } from "../../devnet/feedServer.ts";
import type { TruthChain } from "../chain/truthChain.ts";
import type { WorldNode } from "../nodes/worldNode.ts";
import type { PromiseName } from "../promises.ts";
import type { Offer, RunningProxy } from "../proxies/proxy.ts";

/** All that a scenario acts on. */
export interface ScenarioWorld {
  readonly chain: TruthChain;
  /** A chain with other blocks. */
  readonly other: TruthChain;
  readonly nodes: readonly WorldNode[];
  readonly feed: FeedFaults;
  /** A second connection. It has no messages of its own. */
  readonly otherFeed: FeedFaults;
  readonly proxy: RunningProxy;
  readonly replicas: number;
  readonly random: (below: number) => number;
  /** Runs a change of the chain between two blocks. */
  readonly change: (act: () => Promise<void>) => Promise<void>;
}

export interface ActingWorld extends ScenarioWorld {
  /** Acts at once, and then after each period, until the scenario ends. */
  readonly repeat: (periodMs: number, act: () => unknown) => void;
  /** Ends another fault than those of nodes, once the scenario has ended. */
  readonly atEnd: (end: () => void) => void;
}

export interface Scenario {
  readonly name: string;
  readonly promise: PromiseName;
  /** The planted faults of forebay that it makes visible (soakFaults.ts). */
  readonly finds?: readonly string[] | undefined;
  /** The ability that a proxy must have. */
  readonly needs?: Offer;
  /** Default: one, if it needs a feed. */
  readonly feeds?: 2;
  /** Nothing delays the proxy. */
  readonly isPrompt?: true;
  /** Begins the faults. Those of nodes end with the scenario. */
  readonly begin: (world: ActingWorld) => void;
}

/** While Redis is paused, a new filter is local to its replica (docs/operate.md). */
export const PAUSED_REDIS = "paused Redis";
/** The messages of a feed for each block. */
export const MESSAGES_A_BLOCK = 4;

/** Runs the faults of a scenario until `over` resolves. Nodes are honest again at its end. */
export const runScenario = async (world: ScenarioWorld, { begin }: Scenario, over: Promise<unknown>): Promise<void> => {
  const ending = new AbortController();
  const { signal } = ending;
  const acting: Promise<void>[] = [];
  const repeat: ActingWorld["repeat"] = (periodMs, act) => {
    const run = async (): Promise<void> => {
      while (!signal.aborted) {
        await act();
        await sleep(periodMs, undefined, { signal }).catch(() => undefined);
      }
    };
    acting.push(run());
  };
  const ends: (() => void)[] = [];
  begin({ ...world, repeat, atEnd: (end) => ends.push(end) });
  try {
    await Promise.race([over, ...acting]);
  } finally {
    ending.abort();
    await Promise.all(acting);
    for (const end of ends) {
      end();
    }
    for (const node of world.nodes) {
      node.fault = undefined;
      node.delayMs = 0;
    }
  }
};
