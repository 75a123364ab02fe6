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
  /** 2 s; down to 200 ms. */
  readonly blockTimeMs?: number;
  readonly flashblockMs?: number;
  readonly encoding?: FeedEncoding;
  readonly generation?: MetadataGeneration;
  /** With `ethereum` there are no deposits and no L1 fees. */
  readonly network?: "optimism" | "ethereum";
  /** The L1-attributes deposit, first in every block. */
  readonly deposits?: boolean;
  readonly feed?: boolean;
  /** No timers: the test calls `step` and `sealNow`. */
  readonly manual?: boolean;
  readonly gasLimit?: bigint;
  /** In seconds; the default is now. With it, no block depends on the clock: equal transactions give equal hashes. */
  readonly genesisTime?: number;
}

export interface Devnet {
  /** Where clients send, by HTTP. */
  readonly url: string;
  readonly anvilUrl: string;
  /** The node's own WebSocket, for `newHeads`. */
  readonly anvilWsUrl: string;
  /** undefined with `feed: false`. */
  readonly feedUrl: string | undefined;
  readonly chainId: number;
  readonly events: EventEmitter<SequencerEvents>;
  /** What the feed does to the messages to come. */
  readonly faults: FeedFaults;
  /** What went wrong in the devnet itself; a test may hold that there is nothing. */
  readonly failures: readonly unknown[];
  /** A call to the node itself. */
  rpc(method: string, ...params: readonly unknown[]): Promise<unknown>;
  /** Builds and sends the next message; it begins a block where none is being built. */
  step(): Promise<Flashblock>;
  /** Seals exactly what was sent. Where no block was begun, its index 0 is sent first. */
  sealNow(): Promise<SealedBlock>;
  /** Messages go on, the block does not end. */
  pauseSealing(): void;
  resumeSealing(): void;
  /** Leaves out an index of the block being built; no transaction is lost. `faults.drop` loses a message. */
  skipIndex(): Promise<void>;
  /** Replaces the newest blocks by empty ones: what was in them vanishes, what was being built is begun again. */
  reorg(depth: number): Promise<void>;
  stopNode(): Promise<void>;
  /** Starts it again at the same address with the same chain. */
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
  // Fixed, so that a node that is started again has the same genesis.
  ...["--timestamp", String(options.genesisTime ?? Math.floor(Date.now() / 1_000))],
  "--no-mining",
  // The default order, by fee, would put a deposit last.
  ...["--order", "fifo"],
  ...(isOptimism ? ["--network", "optimism"] : []),
];

/** A sequencer with its feed, on a real node. `close` leaves nothing behind. */
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
    deposits: isOptimism && options.deposits !== false,
    manual: options.manual ?? false,
    followsClock: options.genesisTime === undefined,
    node: () => anvil,
    mempool,
  });
  if (options.feed !== false) {
    sequencer.events.on("message", feed.send);
  }
  sequencer.events.on("error", (error) => failures.push(error));
  const front = await createRpcFront(frontMethods({ chainId, node: () => anvil, mempool, sequencer }), (body) =>
    anvil.post(body),
  );

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
    anvilWsUrl: anvilUrl.replace("http:", "ws:"),
    feedUrl: options.feed === false ? undefined : feed.url,
    chainId,
    events: sequencer.events,
    faults: feed.faults,
    failures,
    rpc: (method, ...params) => anvil.call(method, ...params),
    step: sequencer.step,
    sealNow: sequencer.seal,
    pauseSealing: () => sequencer.setSealing(false),
    resumeSealing: () => sequencer.setSealing(true),
    skipIndex: sequencer.skipIndex,
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
