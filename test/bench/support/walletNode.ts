import { StandInCalls } from "../../support/standIn/standInCalls.ts";
import { StandInChain, type StandInFork } from "../../support/standIn/standInChain.ts";
import { StandInNode } from "../../support/standIn/standInNode.ts";
import { WalletWorld } from "../../support/standIn/walletWorld.ts";

/** A node of the bench: which write sets it has. */
export interface WalletNodeOptions {
  readonly name: string;
  readonly hasTraces: boolean;
  readonly hasAccessLists: boolean;
}

/** Starts a chain with nodes of different abilities. They answer "counts" with their calls by node and method. */
export interface WalletNodesOptions {
  readonly blockMs: number;
  readonly wallets: number;
  readonly pools: number;
  readonly nodes: readonly WalletNodeOptions[];
}

export type NodePorts = Readonly<Record<string, string>>;
/** Calls by node and method, and the number of blocks since the start. */
export interface NodeCounts {
  readonly calls: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly blocks: number;
}

/** Blocks that exist before the first request. */
const FIRST_BLOCKS = 300;
const TRACE_MS = 80;
const ACCESS_LIST_MS = 10;
const SEED = 15;

/** Starts a world whose blocks have access lists, or not. */
const startWorld = async ({ blockMs, wallets, pools }: WalletNodesOptions, fork: StandInFork) => {
  const chain = new StandInChain(fork);
  const world = new WalletWorld(chain, { wallets, pools, seed: SEED });
  await world.genesis();
  for (let index = 0; index < FIRST_BLOCKS; index++) {
    world.mine();
  }
  setInterval(() => world.mine(), blockMs);
  return { chain, execution: await StandInCalls.create(chain) };
};

const start = async (options: WalletNodesOptions) => {
  const listed = await startWorld(options, "amsterdam");
  const plain = await startWorld(options, "prague");
  const started = await Promise.all(
    options.nodes.map(async ({ name, hasTraces, hasAccessLists }) => {
      const node = await StandInNode.start({
        ...(hasAccessLists ? listed : plain),
        traces: hasTraces ? "geth" : undefined,
        hasAccessLists,
        delayMs: { debug_traceBlockByHash: TRACE_MS, eth_getBlockAccessList: ACCESS_LIST_MS },
      });
      return [name, node] as const;
    }),
  );
  process.send?.(Object.fromEntries(started.map(([name, node]) => [name, node.url])));
  return (): NodeCounts => ({
    calls: Object.fromEntries(started.map(([name, { calls }]) => [name, Object.fromEntries(calls)])),
    blocks: plain.chain.height,
  });
};

let readCounts: (() => NodeCounts) | undefined;
process.on("message", async (message: WalletNodesOptions | "counts") => {
  if (message === "counts") {
    process.send?.(readCounts?.() ?? { calls: {}, blocks: 0 });
  } else {
    readCounts = await start(message);
  }
});
process.on("disconnect", () => process.exit());
