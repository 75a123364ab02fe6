import { rpc } from "../../support/clients/rpc.ts";
import { createFakeChain } from "../../support/fakes/fakeChain.ts";
import { createFakeNode } from "../../support/fakes/fakeNode.ts";
import type { Lifespan } from "../../support/servers/redis.ts";
import { createService, type ServiceChain } from "../../support/servers/service.ts";
import { createLiveChain, startLiveNode } from "../liveNode.ts";
import type { AlertFault } from "./alertFault.ts";

/** Nothing listens on port 9 (discard). */
const DEAD_URL = "ws://127.0.0.1:9";
const SLOW_MS = 2_600;
const LAG_BLOCKS = 60;
/** Deeper than what the alert accepts. */
const REORG_BLOCKS = 10;
const CALLS = 5;

/** Starts a service in this process. It ends with the test. */
export const serve = async (t: Lifespan, ...args: Parameters<typeof createService>) => {
  const service = await createService(...args);
  t.after(() => service.close());
  return service;
};

let accounts = 0;
/** Reads accounts that nobody has read. */
export const readAccounts = (url: string, tag = "latest"): Promise<unknown> =>
  Promise.all(
    Array.from({ length: CALLS }, () =>
      rpc(url, "eth_getBalance", [`0x${(++accounts).toString(16).padStart(40, "0")}`, tag]),
    ),
  );

/** Starts a service in front of a live node and one more. */
const serveTwo = async (t: Lifespan, other: ServiceChain["nodes"][number], chain = createLiveChain(t)) => {
  const { url } = await startLiveNode(t, chain);
  return serve(t, { chainId: chain.chainId, nodes: [{ url }, other] });
};

/** Starts a node whose chain goes on from a replaced block. */
const startOnOtherBranch = (t: Lifespan) => {
  const branch = createLiveChain(t);
  branch.reorg(1, 1);
  return startLiveNode(t, branch);
};

export const NODE_FAULTS: Readonly<Record<string, AlertFault>> = {
  "the only node is down": {
    alerts: ["ForebayErrors", "ForebayNodeDown", "ForebayNoNode", "ForebayChainNotServing", "ForebayNodeErrors"],
    start: async (t) => {
      const node = await createFakeNode({ chain: createLiveChain(t) });
      const { url, opsUrl } = await serve(t, { nodes: [{ url: node.url }] });
      return { opsUrl, begin: () => node.close(), call: () => readAccounts(url) };
    },
  },
  "the node is slow": {
    alerts: ["ForebaySlow"],
    start: async (t) => {
      const node = await startLiveNode(t);
      const { url, opsUrl } = await serve(t, { nodes: [{ url: node.url }] });
      node.faults.delayMs = SLOW_MS;
      return { opsUrl, call: () => readAccounts(url) };
    },
  },
  "a node serves another chain": {
    alerts: ["ForebayNodeWrongChain"],
    start: async (t) => {
      const other = await startLiveNode(t, createLiveChain(t, { chainId: 5 }));
      return serveTwo(t, { url: other.url });
    },
  },
  "two origins contradict each other": {
    alerts: ["ForebayHeadsNotAgreed"],
    start: async (t) => serveTwo(t, { url: (await startOnOtherBranch(t)).url }),
  },
  "a node is on another branch than two others": {
    alerts: ["ForebayNodeHeadsIgnored"],
    start: async (t) => {
      const chain = createLiveChain(t);
      const nodes = [await startOnOtherBranch(t), await startLiveNode(t, chain), await startLiveNode(t, chain)];
      return serve(t, { nodes: nodes.map(({ url }) => ({ url })) });
    },
  },
  "the node limits the rate": {
    alerts: ["ForebayNodeRateLimited"],
    start: async (t) => {
      const node = await startLiveNode(t);
      const { url, opsUrl } = await serve(t, { nodes: [{ url: node.url }] });
      node.faults.answer = 429;
      node.faults.methods = ["eth_getBalance"];
      return { opsUrl, call: () => readAccounts(url) };
    },
  },
  "a node rejects the key": {
    alerts: ["ForebayNodeRejecting"],
    start: async (t) => {
      const chain = createLiveChain(t);
      const node = await startLiveNode(t, chain);
      node.faults.answer = 401;
      node.faults.methods = ["eth_getBalance"];
      const { url, opsUrl } = await serveTwo(t, { url: node.url }, chain);
      return { opsUrl, call: () => readAccounts(url) };
    },
  },
  "two of three nodes are down": {
    alerts: ["ForebayAllNodesUsed"],
    start: async (t) => {
      const chain = createLiveChain(t);
      const { url } = await startLiveNode(t, chain);
      const down = [await createFakeNode({ chain }), await createFakeNode({ chain })];
      const nodes = [{ url }, ...down.map((node) => ({ url: node.url }))];
      const service = await serve(t, { chainId: chain.chainId, nodes });
      return {
        opsUrl: service.opsUrl,
        begin: () => Promise.all(down.map((node) => node.close())),
        call: () => readAccounts(service.url),
      };
    },
  },
  "a node is behind": {
    alerts: ["ForebayNodeLag"],
    start: async (t) => {
      const chain = createLiveChain(t);
      const behind = await startLiveNode(t, chain);
      behind.faults.lag = LAG_BLOCKS;
      return serveTwo(t, { url: behind.url }, chain);
    },
  },
  "the WebSocket of a node is dead": {
    alerts: ["ForebayNodeHeadsPolled"],
    start: async (t) => {
      const chain = createLiveChain(t);
      const { url } = await startLiveNode(t, chain);
      return serveTwo(t, { url, wsUrl: DEAD_URL }, chain);
    },
  },
  "a node returns another block": {
    alerts: ["ForebayNodeWrongResponse"],
    start: async (t) => {
      const chain = createLiveChain(t);
      const eth_getBlockByHash = () => chain.blocks[1]?.json;
      const { url } = await startLiveNode(t, chain, { eth_getBlockByHash });
      const service = await serve(t, { nodes: [{ url }] });
      const read = () => rpc(service.url, "eth_getBlockByHash", [chain.blocks.at(-3)?.hash, false]);
      return { opsUrl: service.opsUrl, call: read };
    },
  },
  "the chain has stopped": {
    alerts: ["ForebayHeadStuck", "ForebayHeadOld", "ForebayFinalityStuck"],
    start: async (t) => {
      const { url } = await startLiveNode(t, createFakeChain());
      return serve(t, { nodes: [{ url }] });
    },
  },
  "the chain replaces many blocks": {
    alerts: ["ForebayDeepReorg"],
    start: async (t) => {
      const chain = createLiveChain(t);
      const node = await startLiveNode(t, chain);
      node.faults.refusesFinality = true;
      const { opsUrl } = await serve(t, { nodes: [{ url: node.url }] });
      return { opsUrl, begin: () => chain.reorg(REORG_BLOCKS, REORG_BLOCKS + 1) };
    },
  },
};
