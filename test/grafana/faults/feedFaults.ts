import { ZERO_HASH } from "../../../src/ethereum/hex.ts";
import { createDevnet } from "../../devnet/devnet.ts";
import { rpc } from "../../support/clients/rpc.ts";
import { createFakeFeed } from "../../support/fakes/fakeFeed.ts";
import type { Lifespan } from "../../support/servers/redis.ts";
import { startLiveNode } from "../liveNode.ts";
import type { AlertFault } from "./alertFault.ts";
import { readAccounts, serve } from "./nodeFaults.ts";

/** More messages than the test gets. */
const ALTERED = 2_000;

/** Starts a real node with a feed, and a service in front of it. */
const serveDevnet = async (t: Lifespan) => {
  const devnet = await createDevnet({ blockTimeMs: 1_000 });
  t.after(() => devnet.close());
  const { anvilUrl, anvilWsUrl, feedUrl = "", faults } = devnet;
  const { url, opsUrl } = await serve(t, {
    nodes: [{ url: anvilUrl, wsUrl: anvilWsUrl }],
    pending: { feeds: [feedUrl] },
    forks: "isthmus",
    quirks: { anvilDepositNonce: true },
  });
  return { url, opsUrl, faults };
};

export const FEED_FAULTS: Readonly<Record<string, AlertFault>> = {
  "the feed is silent": {
    alerts: ["ForebayFeedStale", "ForebayPendingUnverified"],
    start: async (t) => {
      const feed = await createFakeFeed();
      t.after(() => feed.close());
      const node = await startLiveNode(t);
      const { url, opsUrl } = await serve(t, { nodes: [{ url: node.url }], pending: { feeds: [feed.url] } });
      return { opsUrl, call: () => readAccounts(url, "pending") };
    },
  },
  "the feed loses messages": {
    alerts: ["ForebayFeedGaps"],
    start: async (t) => {
      const { url, opsUrl, faults } = await serveDevnet(t);
      const call = async (): Promise<void> => {
        faults.drop();
        await rpc(url, "eth_getBlockByNumber", ["pending", false]);
      };
      return { opsUrl, call };
    },
  },
  "messages without hashes name a wrong gas": {
    alerts: ["ForebayMismatches"],
    start: async (t) => {
      const { url, opsUrl, faults } = await serveDevnet(t);
      for (let count = 0; count < ALTERED; count++) {
        // A message with a hash is discarded, because it does not match its own header.
        faults.alter((message) => {
          const wrong = message.index === 1 ? { gas_used: "0x1" as const } : {};
          return { ...message, diff: { ...message.diff, block_hash: ZERO_HASH, ...wrong } };
        });
      }
      return { opsUrl, call: () => rpc(url, "eth_getBlockByNumber", ["pending", false]) };
    },
  },
};
