import type { EventEmitter } from "node:events";
import { type Anvil, startAnvil } from "./anvil.ts";
import { createFeedServer, type FeedFaults, type FeedServer } from "./feedServer.ts";
import type { FeedEncoding, Flashblock, MetadataGeneration } from "./flashblock.ts";
import { frontMethods } from "./frontMethods.ts";
import { prepareL1Block, SEQUENCER_FEE_VAULT } from "./l1Attributes.ts";
import { createMempool } from "./mempool.ts";
import { createRpcFront } from "./rpcFront.ts";
import { createSequencer, type SealedBlock, type SequencerEvents } from "./sequencer.ts";

export interface DevnetOptions {
  readonly chainId?: number;
  /** Default 2 s; minimum 200 ms. */
  readonly blockTimeMs?: number;
  readonly flashblockMs?: number;
  readonly encoding?: FeedEncoding;
  readonly generation?: MetadataGeneration;
  /** `ethereum` has no deposits and no L1 fees. */
  readonly network?: "optimism" | "ethereum";
  readonly feed?: boolean;
  /** Without timers, the test calls `step` and `sealNow`. */
  readonly manual?: boolean;
  /** Awaited before each message that a timer starts, so that slow clients reduce the pace. */
  readonly ready?: () => Promise<void>;
  readonly gasLimit?: bigint;
  /** `safe` is this many blocks below the head, and `finalized` twice as many. Default: 32. */
  readonly epochSlots?: number;
  /** In seconds; the default is now. With it, no block depends on the clock: equal transactions give equal hashes. */
  readonly genesisTime?: number;
  /** The result of web3_clientVersion. Default: that of anvil, whose state forebay does not follow. */
  readonly clientVersion?: string;
  /** States that the node keeps, in memory alone. Default: all, on disk if they are many. */
  readonly keptStates?: number;
}

export interface Devnet {
  /** HTTP URL for clients. */
  readonly url: string;
  readonly anvilUrl: string;
  /** The arguments of the node. Another one with them, and with the same transactions in each block, has the same chain. */
  readonly anvilArgs: readonly string[];
  /** WebSocket URL of the node, for `newHeads`. */
  readonly anvilWsUrl: string;
  /** URL of the feed; undefined with `feed: false`. */
  readonly feedUrl: string | undefined;
  readonly chainId: number;
  readonly events: EventEmitter<SequencerEvents>;
  /** Faults of the next messages of the feed. */
  readonly faults: FeedFaults;
  /** Errors of the devnet itself. A test can assert that there are none. */
  readonly failures: readonly unknown[];
  /** Sends a call to the node directly. */
  rpc(method: string, ...params: readonly unknown[]): Promise<unknown>;
  /** Builds and sends the next message. Begins a block if no block is open. */
  step(): Promise<Flashblock>;
  /** Seals the block with exactly the transactions of its messages. If no block has begun, sends index 0 first. */
  sealNow(): Promise<SealedBlock>;
  /** Continues with messages, and does not end the block. */
  pauseSealing(): void;
  /** Replaces the newest blocks by empty ones. Their transactions are lost, and the current block begins again. */
  reorg(depth: number): Promise<void>;
  stopNode(): Promise<void>;
  /** Starts the node again with the same address and chain. */
  startNode(): Promise<void>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const DEFAULT_CHAIN_ID = 901;
const DEFAULT_BLOCK_TIME_MS = 2_000;
const DEFAULT_FLASHBLOCK_MS = 200;
const DEFAULT_GAS_LIMIT = 60_000_000n;

const anvilArgs = (chainId: number, isOptimism: boolean, options: DevnetOptions): string[] => [
  ...["--chain-id", String(chainId)],
  ...["--gas-limit", String(options.gasLimit ?? DEFAULT_GAS_LIMIT)],
  // A fixed value, so that a restarted node has the same genesis.
  ...["--timestamp", String(options.genesisTime ?? Math.floor(Date.now() / 1_000))],
  ...(options.epochSlots === undefined ? [] : ["--slots-in-an-epoch", String(options.epochSlots)]),
  ...(options.keptStates === undefined ? [] : ["--prune-history", String(options.keptStates)]),
  "--no-mining",
  // With the default order, by fee, a deposit would be last.
  ...["--order", "fifo"],
  ...(isOptimism ? ["--network", "optimism"] : []),
];

/** Starts a sequencer with its feed on a real node. `close` ends all its processes. */
export const createDevnet = async (options: DevnetOptions = {}): Promise<Devnet> => {
  const chainId = options.chainId ?? DEFAULT_CHAIN_ID;
  const isOptimism = (options.network ?? "optimism") === "optimism";
  const args = anvilArgs(chainId, isOptimism, options);
  const failures: unknown[] = [];
  let anvil: Anvil = await startAnvil(args);
  let savedState: unknown;
  const { port, url: anvilUrl } = anvil;

  const prepare = async () => {
    await anvil.call("anvil_setCoinbase", SEQUENCER_FEE_VAULT);
    if (isOptimism) {
      await prepareL1Block(anvil);
    }
  };
  await prepare().catch(async (error) => {
    await anvil.close();
    throw error;
  });

  const feed: FeedServer = await createFeedServer(options.encoding ?? "text");
  const mempool = createMempool();
  const sequencer = createSequencer({
    chainId,
    blockTimeMs: options.blockTimeMs ?? DEFAULT_BLOCK_TIME_MS,
    flashblockMs: options.flashblockMs ?? DEFAULT_FLASHBLOCK_MS,
    generation: options.generation ?? "a",
    deposits: isOptimism,
    manual: options.manual ?? false,
    ready: options.ready,
    followsClock: options.genesisTime === undefined,
    node: () => anvil,
    mempool,
  });
  if (options.feed !== false) {
    sequencer.events.on("message", feed.send);
  }
  sequencer.events.on("error", (error) => failures.push(error));
  const methods = frontMethods({ chainId, node: () => anvil, mempool, sequencer });
  if (options.clientVersion !== undefined) {
    methods.set("web3_clientVersion", async () => options.clientVersion);
  }
  const front = await createRpcFront(methods, (body) => anvil.post(body));

  let closed: Promise<void> | undefined;
  const close = async () => {
    await sequencer.close();
    await Promise.all([front.close(), feed.close(), anvil.close()]);
  };
  const closeOnce = () => {
    closed ??= close();
    return closed;
  };

  return {
    url: front.url,
    anvilUrl,
    anvilArgs: args,
    anvilWsUrl: anvilUrl.replace("http:", "ws:"),
    feedUrl: options.feed === false ? undefined : feed.url,
    chainId,
    events: sequencer.events,
    faults: feed.faults,
    failures,
    rpc: (method, ...params) => anvil.call(method, ...params),
    step: sequencer.step,
    sealNow: sequencer.seal,
    pauseSealing: sequencer.pauseSealing,
    reorg: sequencer.reorg,
    stopNode: () =>
      sequencer.between(async () => {
        sequencer.setRunning(false);
        savedState = await anvil.call("anvil_dumpState", true);
        await anvil.close();
      }),
    startNode: () =>
      sequencer.between(async () => {
        anvil = await startAnvil(args, port);
        await anvil.call("anvil_loadState", savedState);
        await anvil.call("anvil_setCoinbase", SEQUENCER_FEE_VAULT);
        sequencer.setRunning(true);
      }),
    close: closeOnce,
    [Symbol.asyncDispose]: closeOnce,
  };
};
