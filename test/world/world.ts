import { setTimeout as sleep } from "node:timers/promises";
import { createUnitsOf } from "../../src/access/providerUnits.ts";
import { createFeedServer } from "../devnet/feedServer.ts";
import { createRandomBelow } from "../support/builders/randomValues.ts";
import type { Lifespan } from "../support/servers/redis.ts";
import { BLOCK_MS } from "./chain/blockTime.ts";
import { TruthChain } from "./chain/truthChain.ts";
import { createTurns } from "./chain/turns.ts";
import { startWorldNode, type WorldNode } from "./nodes/worldNode.ts";
import type { RunningProxy, TestedProxy } from "./proxies/proxy.ts";
import { MESSAGES_A_BLOCK, type ScenarioWorld } from "./scenarios/scenario.ts";

export interface WorldOptions<Running extends RunningProxy = RunningProxy> {
  readonly proxy: Omit<TestedProxy, "start"> & { start(...args: Parameters<TestedProxy["start"]>): Promise<Running> };
  readonly seed: number;
  readonly feeds: number;
  readonly replicas: number;
  /** The lag that the judge allows during a fault. */
  readonly maxLagMs?: number;
  /** The proxy has a second chain too. It grows and reorganises by itself. */
  readonly hasOther?: boolean;
  readonly onUnexpectedEnd?: (text: string) => void;
}

/** A chain, its nodes and feeds, and a proxy in front of them. */
export interface World<Running extends RunningProxy = RunningProxy> extends ScenarioWorld {
  readonly proxy: Running;
}

/** nodecore only knows the names of public chains. */
const CHAIN_ID = 1;
const OTHER_CHAIN_ID = 902;
const NODES = 3;
/** Clients start when the proxy has seen some blocks. */
const WARM_MS = 1_500;
/** One block in this number of the second chain is replaced. */
const OTHER_REORG = 20;

const unitsOf = createUnitsOf();

/** Counts the calls and provider units of all nodes. */
export const countCalls = ({ nodes }: ScenarioWorld): { readonly calls: number; readonly units: number } => {
  let [count, units] = [0, 0];
  for (const [method, calls] of nodes.flatMap((node) => [...node.calls])) {
    count += calls;
    units += calls * unitsOf(method);
  }
  return { calls: count, units };
};

/** Waits for a number of new heads. */
export const untilBlocks = async (chain: TruthChain, blocks: number): Promise<void> => {
  const passed = Promise.withResolvers<void>();
  let left = blocks;
  const stop = chain.onHead(() => --left === 0 && passed.resolve());
  await passed.promise;
  stop();
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

const mine = async (chain: TruthChain, random: (below: number) => number, signal: AbortSignal): Promise<void> => {
  while (!signal.aborted) {
    await sleep(BLOCK_MS);
    await (random(OTHER_REORG) === 0 ? chain.reorg(2, 3) : chain.mine(random(3)));
  }
};

/** Starts a world. It ends with its lifespan. */
export const startWorld = async <Running extends RunningProxy>(
  t: Lifespan,
  { proxy, seed, feeds, replicas, maxLagMs, hasOther = false, onUnexpectedEnd }: WorldOptions<Running>,
): Promise<World<Running>> => {
  const chain = await TruthChain.create(CHAIN_ID, seed, maxLagMs);
  const other = await TruthChain.create(OTHER_CHAIN_ID, seed, maxLagMs);
  t.after(() => {
    chain.lagBound.close();
    other.lagBound.close();
  });
  const nodes: WorldNode[] = [];
  for (let count = 0; count < NODES; count++) {
    nodes.push(await startWorldNode(t, chain));
  }
  const otherNode = await startWorldNode(t, other);
  const [feed, otherFeed] = [await createFeedServer("text"), await createFeedServer("text")];
  t.after(() => Promise.all([feed.close(), otherFeed.close()]));
  chain.feed.on("message", feed.send);
  const change = createTurns();
  const ending = new AbortController();
  const building = [build({ chain, change }, feeds > 0, createRandomBelow(seed + 1), ending.signal)];
  if (hasOther) {
    building.push(mine(other, createRandomBelow(seed + 2), ending.signal));
  }
  t.after(() => {
    ending.abort();
    return Promise.all(building);
  });
  const started = await proxy.start(t, {
    ...{ chainId: CHAIN_ID, nodeUrls: nodes.map(({ url }) => url), replicas },
    feedUrls: [feed.url, otherFeed.url].slice(0, feeds),
    other: hasOther ? { chainId: OTHER_CHAIN_ID, nodeUrl: otherNode.url } : undefined,
    ...(onUnexpectedEnd && { onUnexpectedEnd }),
  });
  await sleep(WARM_MS);
  return {
    ...{ chain, other, nodes, change, proxy: started, replicas },
    ...{ feed: feed.faults, otherFeed: otherFeed.faults },
    random: createRandomBelow(seed + 3),
  };
};
