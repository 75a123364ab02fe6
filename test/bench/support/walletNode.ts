import { setTimeout as sleep } from "node:timers/promises";
import { createFeedServer } from "../../devnet/feedServer.ts";
import { createRandom } from "../../support/builders/randomValues.ts";
import { startWorldNode } from "../../world/nodes/worldNode.ts";
import { FeedWorld } from "../../world/state/feedWorld.ts";
import { StandInChain, type StandInFork } from "../../world/state/standInChain.ts";
import { WalletWorld, type WalletWorldOptions } from "../../world/state/walletWorld.ts";

/** The write sets that a node has, or that its sequencer's feed shows. */
export type WalletSource = "trace" | "accessList" | "feed" | "none";

/** A node of the bench. */
export interface WalletNodeOptions {
  readonly name: string;
  readonly source: WalletSource;
}

/** Stops the node of this name, or starts it again. Answered when that is done. */
export interface WalletNodeChange {
  readonly isStopped: boolean;
  readonly name: string;
}

/** Starts a chain with nodes of different abilities. They answer "counts" with their calls by node and method. */
export interface WalletNodesOptions {
  readonly blockMs: number;
  readonly wallets: number;
  readonly pools: number;
  readonly nodes: readonly WalletNodeOptions[];
}

/** The URLs of a node, and of the feed of its chain. */
export interface NodeUrls {
  readonly url: string;
  readonly feedUrl: string | undefined;
}
/** By the name of the node. */
export type NodesUrls = Readonly<Record<string, NodeUrls>>;
/** Calls by node and method, and the number of blocks since the start. */
export interface NodeCounts {
  readonly calls: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly blocks: number;
}

/** Blocks that exist before the first request. */
const FIRST_BLOCKS = 300;
/** Time until a node answers some methods. */
const DELAYS_MS: Readonly<Record<string, number>> = { debug_traceBlockByHash: 80, eth_getBlockAccessList: 10 };
const SEED = 15;

const FLASHBLOCK_MS = 200;
const MIN_MESSAGES = 2;

/** A chain on which blocks are sealed. */
interface RunningWorld {
  readonly chain: StandInChain;
  readonly feedUrl: string | undefined;
}

/** Calls an action at an interval, late by as much as the last call took too long. Failures end the process. */
const repeat = async (everyMs: number, action: () => Promise<void> | void): Promise<void> => {
  for (let dueMs = performance.now() + everyMs; ; dueMs += everyMs) {
    await sleep(Math.max(0, dueMs - performance.now()));
    await action();
  }
};

/** Announces each block in messages, and seals it. Returns the URL of the feed. */
const startSequencer = async (chain: StandInChain, options: WalletWorldOptions, blockMs: number): Promise<string> => {
  const feed = await createFeedServer("text");
  const world = await FeedWorld.create(chain, options, createRandom(SEED));
  const messages = Math.max(MIN_MESSAGES, Math.round(blockMs / FLASHBLOCK_MS));
  let index = 0;
  const next = async (): Promise<void> => {
    if (index === messages) {
      world.seal();
      index = 0;
    }
    feed.send(index === 0 ? await world.begin() : await world.step(1 / (messages - index)));
    index++;
  };
  void repeat(blockMs / messages, next);
  return feed.url;
};

/** Starts a world whose blocks have access lists, or are announced by a feed, or neither. State roots take 35 ms of CPU a block. */
const startWorld = async (
  { blockMs, wallets, pools }: WalletNodesOptions,
  source: WalletSource,
): Promise<RunningWorld> => {
  const fork: StandInFork = source === "accessList" ? "amsterdam" : "prague";
  const chain = new StandInChain(fork, source === "accessList");
  const options = { wallets, pools, seed: SEED };
  const world = new WalletWorld(chain, options);
  await world.genesis();
  for (let index = 0; index < FIRST_BLOCKS; index++) {
    world.mine();
  }
  if (source === "feed") {
    return { chain, feedUrl: await startSequencer(chain, options, blockMs) };
  }
  void repeat(blockMs, () => world.mine());
  return { chain, feedUrl: undefined };
};

const start = async (options: WalletNodesOptions) => {
  const worlds = new Map<string, Promise<RunningWorld>>();
  /** Nodes with traces and nodes without a source share a chain. */
  const worldOf = (source: WalletSource): Promise<RunningWorld> => {
    const name = source === "trace" ? "none" : source;
    const world = worlds.get(name) ?? startWorld(options, source);
    worlds.set(name, world);
    return world;
  };
  const started = await Promise.all(
    options.nodes.map(async ({ name, source }) => {
      const { chain, feedUrl } = await worldOf(source);
      // It ends with the process.
      const node = await startWorldNode({ after: () => undefined }, chain, {
        traces: source === "trace" ? "geth" : undefined,
        beforeResponse: (method) => (method in DELAYS_MS ? sleep(DELAYS_MS[method]) : undefined),
      });
      return { name, node, chain, urls: { url: node.url, feedUrl } };
    }),
  );
  process.send?.(Object.fromEntries(started.map(({ name, urls }) => [name, urls])));
  const restarts = new Map<string, () => Promise<void>>();
  return {
    counts: (): NodeCounts => ({
      calls: Object.fromEntries(started.map(({ name, node: { calls } }) => [name, Object.fromEntries(calls)])),
      blocks: Math.min(...started.map(({ chain }) => chain.height)),
    }),
    change: async ({ isStopped, name }: WalletNodeChange): Promise<void> => {
      const node = started.find((each) => each.name === name)?.node;
      if (isStopped && node !== undefined) {
        restarts.set(name, await node.stop());
      } else {
        await restarts.get(name)?.();
      }
    },
  };
};

let running: Awaited<ReturnType<typeof start>> | undefined;
process.on("message", async (message: WalletNodesOptions | WalletNodeChange | "counts") => {
  if (message === "counts") {
    process.send?.(running?.counts() ?? { calls: {}, blocks: 0 });
  } else if ("isStopped" in message) {
    await running?.change(message);
    process.send?.("changed");
  } else {
    running = await start(message);
  }
});
process.on("disconnect", () => process.exit());
