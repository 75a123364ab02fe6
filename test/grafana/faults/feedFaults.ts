import { createDevnet } from "../../devnet/devnet.ts";
import { rpc } from "../../support/clients/rpc.ts";
import { createFakeFeed } from "../../support/fakes/fakeFeed.ts";
import { startLiveNode } from "../liveNode.ts";
import type { AlertFault } from "./alertFault.ts";
import { readAccounts, serve } from "./nodeFaults.ts";

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
  "the feed loses messages, and others name a wrong gas": {
    alerts: ["ForebayFeedGaps", "ForebayMismatches"],
    start: async (t) => {
      const devnet = await createDevnet({ blockTimeMs: 1_000 });
      t.after(() => devnet.close());
      const { anvilUrl, anvilWsUrl, feedUrl = "", faults } = devnet;
      const { url, opsUrl } = await serve(t, {
        nodes: [{ url: anvilUrl, wsUrl: anvilWsUrl }],
        pending: { feeds: [feedUrl] },
        forks: "isthmus",
        quirks: { anvilDepositNonce: true },
      });
      let isLost = false;
      const call = async (): Promise<void> => {
        isLost = !isLost;
        if (isLost) {
          faults.drop();
        } else {
          faults.alter((message) => ({ ...message, diff: { ...message.diff, gas_used: "0x1" } }));
        }
        await rpc(url, "eth_getBlockByNumber", ["pending", false]);
      };
      return { opsUrl, call };
    },
  },
};
