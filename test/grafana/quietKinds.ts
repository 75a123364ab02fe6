import { createHash } from "node:crypto";
import type { z } from "zod";
import type { configSchema } from "../../src/config/schema.ts";
import { startAnvil } from "../devnet/anvil.ts";
import { createDevnet } from "../devnet/devnet.ts";
import { rpc } from "../support/clients/rpc.ts";
import { createFakeFeed } from "../support/fakes/fakeFeed.ts";
import { Payer } from "../support/payments/payer.ts";
import { startFacilitator } from "../support/payments/standInFacilitator.ts";
import { deployToken, NETWORK } from "../support/payments/token.ts";
import { startCommand } from "../support/servers/command.ts";
import { type Lifespan, startRedis } from "../support/servers/redis.ts";
import { createLiveChain, type LiveChainOptions, startLiveNode } from "./liveNode.ts";

type Input = z.input<typeof configSchema>;
type ChainInput = Input["chains"][number];

const KEY = "a-key";
/** Blocks of a chain with several blocks a second. */
const FAST_MS = 200;

const chainOf = async (t: Lifespan, options: LiveChainOptions & { readonly name?: string } = {}) => {
  const { url, wsUrl } = await startLiveNode(t, createLiveChain(t, options));
  return { name: options.name ?? "chain", nodes: [{ url, wsUrl }] } satisfies ChainInput;
};

const paymentOf = async (t: Lifespan) => {
  const anvil = await startAnvil([]);
  t.after(() => anvil.close());
  const token = await deployToken(anvil, new Payer().address, 1_000_000_000n);
  const facilitator = await startFacilitator(anvil.url);
  t.after(() => facilitator.close());
  return {
    payTo: `0x${"aa".repeat(20)}`,
    network: NETWORK,
    asset: token.asset,
    price: { default: "0.001" },
    facilitator: { url: facilitator.url },
  };
};

const KINDS: Readonly<Record<string, (t: Lifespan) => Promise<Input>>> = {
  "no-feed": async (t) => ({ chains: [await chainOf(t)] }),
  feed: async (t) => {
    const devnet = await createDevnet({ network: "optimism" });
    t.after(() => devnet.close());
    const { anvilUrl, anvilWsUrl, feedUrl = "" } = devnet;
    const chain = { name: "chain", nodes: [{ url: anvilUrl, wsUrl: anvilWsUrl }], pending: { feeds: [feedUrl] } };
    return { chains: [{ ...chain, forks: "isthmus", quirks: { anvilDepositNonce: true } }] };
  },
  // The chain has ended its feed, which is still configured.
  native: async (t) => {
    const feed = await createFakeFeed();
    t.after(() => feed.close());
    return { chains: [{ ...(await chainOf(t, { blockMs: FAST_MS })), pending: { feeds: [feed.url] } }] };
  },
  "two-chains": async (t) => ({
    chains: [await chainOf(t, { name: "one" }), await chainOf(t, { name: "two", chainId: 31_338, blockMs: FAST_MS })],
  }),
  redis: async (t) => ({
    chains: [await chainOf(t)],
    // A busy machine makes a reply late, and a late reply is a failure of the limiter.
    cache: { redis: (await startRedis(t)).url, redisTimeoutMs: 2_000 },
    access: { limitPerAddress: { calls: 1_000 }, limitStore: "redis" },
  }),
  payments: async (t) => ({ chains: [await chainOf(t)], access: { payment: await paymentOf(t) } }),
  keys: async (t) => ({
    chains: [await chainOf(t)],
    access: { keys: [{ name: "client", sha256: createHash("sha256").update(KEY).digest("hex") }] },
  }),
};

export interface QuietKinds {
  /** The host of the ops port of each process. */
  readonly targets: Readonly<Record<string, string>>;
  /** Sends calls without faults to each process. */
  call(): Promise<void>;
}

/** Starts a process of each kind of configuration, without a fault. */
export const startQuietKinds = async (t: Lifespan): Promise<QuietKinds> => {
  const started = await Promise.all(
    Object.entries(KINDS).map(async ([kind, configOf]) => {
      const config = await configOf(t);
      return { kind, config, process: await startCommand(t, config) };
    }),
  );
  const urls = started.flatMap(({ config: { chains }, process: { url } }) =>
    chains.length === 1 ? [url] : chains.map(({ name }) => `${url}/${name}`),
  );
  return {
    targets: Object.fromEntries(started.map(({ kind, process }) => [kind, new URL(process.opsUrl).host])),
    call: async () => {
      const account = `0x${"1".repeat(40)}`;
      for (const url of urls) {
        for (const tag of ["latest", "pending"]) {
          await rpc(url, "eth_getBalance", [account, tag], { "x-api-key": KEY });
        }
      }
    },
  };
};
