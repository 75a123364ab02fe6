import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { createRandom } from "../support/builders/randomValues.ts";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeFeed, type FakeFeed } from "../support/fakes/fakeFeed.ts";
import type { Lifespan } from "../support/servers/redis.ts";
import { withLifespan } from "../support/servers/withLifespan.ts";
import { startWorldNode, type WorldNode } from "../world/nodes/worldNode.ts";
import { FeedWorld } from "../world/state/feedWorld.ts";
import { StandInChain } from "../world/state/standInChain.ts";
import { walletAddress } from "../world/state/walletKeys.ts";
import {
  balanceSlot,
  createWalletCalls,
  FEE_RECIPIENT,
  MULTICALL,
  poolAddress,
  shownTokens,
  WalletWorld,
} from "../world/state/walletWorld.ts";
import { type ForebayServer, startConfigured, THIS_TREE } from "./support/forebay.ts";
import { type BenchOptions, type BenchResult, round } from "./support/result.ts";

const CLAIM = "executions on known state ask nodes for none of it: 0";
const HEADS = 50;
const SHORT_HEADS = 5;
const WALLETS = 50;
/** With 50 wallets, 40 tokens, the multicall and the fee recipient: 200 accounts. */
const POOLS = 108;
const CALLS = 20;
const BLOCK_MS = 1_000;
const WORLD = { wallets: WALLETS, pools: POOLS, seed: 7 };
const MAX_BATCH = 500;
/** Learning begins when a value is read at a second block. */
const LEARNING_HEADS = 3;

interface Read {
  readonly method: string;
  readonly params: readonly unknown[];
}

const wallets = Array.from({ length: WALLETS }, (_, index) => index);
const ACCOUNTS: readonly Address[] = [
  ...new Set([
    ...wallets.map(walletAddress),
    ...wallets.flatMap(shownTokens),
    ...Array.from({ length: POOLS }, (_, index) => poolAddress(index)),
    MULTICALL,
    FEE_RECIPIENT,
  ]),
];
const SLOTS: readonly (readonly [Address, Hash])[] = wallets.flatMap((wallet) =>
  shownTokens(wallet).map((token) => [token, balanceSlot(walletAddress(wallet))] as const),
);
const READS: readonly Read[] = [
  ...ACCOUNTS.flatMap((address) =>
    ["eth_getBalance", "eth_getTransactionCount", "eth_getCode"].map((method) => ({ method, params: [address] })),
  ),
  ...SLOTS.map((params) => ({ method: "eth_getStorageAt", params })),
];

/** Calls of executions for state, and for predictions of it. */
const STATE_METHODS = [
  ...["eth_getBalance", "eth_getTransactionCount", "eth_getCode", "eth_getStorageAt", "eth_getProof"],
  ...["eth_call", "eth_createAccessList", "debug_traceCall"],
];

/** The multicall that reads 20 balances of one wallet. */
const callOf = (wallet: number): object => {
  const call = createWalletCalls(wallet % WALLETS)(false).find(({ method }) => method === "eth_call");
  return { from: walletAddress(wallet % WALLETS), gas: "0x1312d00", ...(call?.params[0] as object) };
};

/** A forebay in front of a node of its own. */
interface Subject {
  readonly follows: boolean;
  readonly server: ForebayServer;
  readonly node: WorldNode;
  readonly url: string;
  stateRequests: number;
}

interface World {
  readonly chain: StandInChain;
  readonly feedUrl: string;
}

const startSubject = async (t: Lifespan, { chain, feedUrl }: World, tree: URL, follows: boolean): Promise<Subject> => {
  const node = await startWorldNode(t, chain);
  const state = follows ? {} : { follow: false };
  const server = await startConfigured(
    {
      chains: [
        {
          ...{ name: "chain", nodes: [{ url: node.url }], forks: "prague", blockTimeMs: BLOCK_MS, state },
          pending: { mode: "feed", feeds: [feedUrl] },
        },
      ],
      server: { port: 0, opsPort: 0 },
    },
    tree,
  );
  t.after(() => server.end());
  return { follows, server, node, url: `http://127.0.0.1:${server.port}`, stateRequests: 0 };
};

const resultOf = async (subject: Subject, method: string, params: readonly unknown[]): Promise<unknown> => {
  const { body, text } = await rpc(subject.url, method, params);
  if (body.error !== undefined) {
    throw new Error(`${method}: ${text}`);
  }
  return body.result;
};

/** Sends the executions of one head, and counts the node's calls for state during them. */
const execute = async (subject: Subject, head: number): Promise<void> => {
  const counted = (): number => STATE_METHODS.reduce((sum, method) => sum + (subject.node.calls.get(method) ?? 0), 0);
  const before = counted();
  const calls = Array.from({ length: CALLS }, (_, index) => callOf(head * CALLS + index));
  await resultOf(subject, "eth_simulateV1", [{ blockStateCalls: [{ calls }] }, "latest"]);
  for (const method of ["eth_estimateGas", "eth_createAccessList", "eth_call"]) {
    await resultOf(subject, method, [callOf(head), "pending"]);
  }
  subject.stateRequests += counted() - before;
};

/** Reads all values as a client that reads them one by one. */
const readAll = async ({ url }: Subject): Promise<void> => {
  const calls = READS.map(({ method, params }, id) => ({ jsonrpc: "2.0", id, method, params: [...params, "latest"] }));
  for (let start = 0; start < calls.length; start += MAX_BATCH) {
    const body = JSON.stringify(calls.slice(start, start + MAX_BATCH));
    const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
    await response.text();
  }
};

/** Whether a value that each block writes is known after the head. */
const isHeadKnown = async ({ url }: Subject): Promise<boolean> => {
  const { headers } = await rpc(url, "eth_getBalance", [FEE_RECIPIENT, "latest"]);
  return headers.get("cache-status")?.includes("detail=state") === true;
};

const numberOf = async (subject: Subject, block: string): Promise<number> => {
  const found = (await resultOf(subject, "eth_getBlockByNumber", [block, false])) as {
    readonly number: string;
    readonly transactions: readonly unknown[];
  } | null;
  return found === null || (block === "pending" && found.transactions.length === 0) ? -1 : Number(found.number);
};

/** Seals the blocks of a world, and waits until the subjects serve them. */
class Sequencer {
  readonly #chain: StandInChain;
  readonly #world: FeedWorld;
  readonly #feed: FakeFeed;
  readonly #subjects: readonly Subject[];

  constructor(parts: {
    readonly chain: StandInChain;
    readonly world: FeedWorld;
    readonly feed: FakeFeed;
    readonly subjects: readonly Subject[];
  }) {
    this.#chain = parts.chain;
    this.#world = parts.world;
    this.#feed = parts.feed;
    this.#subjects = parts.subjects;
  }

  /** Announces a block with all its transactions. Resolves when it is pending everywhere. */
  async announce(): Promise<void> {
    const height = this.#chain.height + 1;
    this.#feed.send(await this.#world.begin());
    this.#feed.send(await this.#world.step(1));
    for (const subject of this.#subjects) {
      await until(async () => (await numberOf(subject, "pending")) === height, `block ${height} is pending`);
    }
  }

  /** Seals the announced block. Resolves when it is the head everywhere, and what it wrote is known. */
  async seal(): Promise<void> {
    this.#world.seal();
    for (const subject of this.#subjects) {
      const { height } = this.#chain;
      await until(async () => (await numberOf(subject, "latest")) === height, `block ${height} is the head`);
      await until(
        async () => !subject.follows || (await isHeadKnown(subject)),
        `the state of block ${height} is known`,
      );
    }
  }
}

/**
 * Counts the calls to nodes for state while clients execute on values that plain reads have made known.
 * At each head there is a simulation of 20 calls, and an estimate, an access list and a call at `pending`.
 * The yardstick is the checkout in AGAINST, by default this one without known state.
 */
export const bench = ({ short }: BenchOptions): Promise<BenchResult> =>
  withLifespan(async (t) => {
    const { AGAINST } = process.env;
    const chain = new StandInChain("prague");
    const wallets = new WalletWorld(chain, WORLD);
    await wallets.genesis();
    wallets.mine();
    const feed = await createFakeFeed();
    t.after(() => feed.close());
    const place = { chain, feedUrl: feed.url };
    const ours = await startSubject(t, place, THIS_TREE, true);
    const tree = AGAINST === undefined ? THIS_TREE : pathToFileURL(`${resolve(AGAINST)}/`);
    const yardstick = await startSubject(t, place, tree, AGAINST !== undefined);
    const subjects = [ours, yardstick];
    await until(() => feed.connections >= subjects.length, "the feed is followed");
    const world = await FeedWorld.create(chain, WORLD, createRandom(WORLD.seed));
    const sequencer = new Sequencer({ chain, world, feed, subjects });
    for (let head = 0; head < LEARNING_HEADS; head++) {
      await sequencer.announce();
      await sequencer.seal();
      await Promise.all(subjects.map(readAll));
    }
    const heads = short ? SHORT_HEADS : HEADS;
    for (let head = 0; head < heads; head++) {
      await sequencer.announce();
      for (const subject of subjects) {
        await execute(subject, head);
      }
      await sequencer.seal();
    }
    return {
      claim: CLAIM,
      ratio: round(yardstick.stateRequests / Math.max(1, ours.stateRequests)),
      ours: ours.stateRequests,
      yardstick: yardstick.stateRequests,
      unit: "calls to nodes for state",
      ...{ heads, accounts: ACCOUNTS.length, slots: SLOTS.length },
      yardstickIs: AGAINST === undefined ? "this tree without known state" : "the tree in AGAINST",
    };
  });
