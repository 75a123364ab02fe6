import { addressOf } from "../../support/builders/stateModel.ts";
import { rpc } from "../../support/clients/rpc.ts";
import { createFakeChain } from "../../support/fakes/fakeChain.ts";
import { createFakeNode } from "../../support/fakes/fakeNode.ts";
import type { Lie } from "../../support/fakes/lyingNode.ts";
import type { Lifespan } from "../../support/servers/redis.ts";
import { createService, type Service, type ServiceChain } from "../../support/servers/service.ts";
import { startWorldNode } from "../../world/nodes/worldNode.ts";
import { StandInChain } from "../../world/state/standInChain.ts";
import { createLiveChain, startLiveNode } from "../liveNode.ts";
import type { AlertFault, FaultyProcess } from "./alertFault.ts";

/** Nothing listens on port 9 (discard). */
const DEAD_URL = "ws://127.0.0.1:9";
const SLOW_MS = 2_600;
const LAG_BLOCKS = 60;
/** Deeper than what the alert accepts. */
const REORG_BLOCKS = 10;
const CALLS_PER_REORG = 20;
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

/** The blocks of a fast chain are linked while clients use it. */
const withClient = ({ url, opsUrl }: Pick<Service, "url" | "opsUrl">): FaultyProcess => ({
  opsUrl,
  call: () => rpc(url, "eth_blockNumber", []),
});

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

const ACCOUNTS = Array.from({ length: 8 }, (_, index) => addressOf(index));
const LEARNING_BLOCKS = 8;

/** The first node answers again before the next refusal, also after its breaker was open. */
const CALLS_BETWEEN_REFUSALS = 30;

/** Starts two nodes of which the first refuses reads, and the second lies, once the balances are known. */
const startDisagreement = async (t: Lifespan) => {
  const chain = new StandInChain("prague");
  chain.mine(ACCOUNTS.map((address) => [address, 1n]));
  const start = () => startWorldNode(t, chain, { traces: "geth" });
  const [first, liar] = [await start(), await start()];
  const service = await serve(t, {
    nodes: [first, liar].map(({ url }, priority) => ({ url, priority })),
    ...{ blockTimeMs: 20_000, forks: "prague" },
    state: { source: "trace" },
  });
  const readAll = (headers: Readonly<Record<string, string>> = {}) =>
    Promise.all(ACCOUNTS.map((account) => rpc(service.url, "eth_getBalance", [account, "latest"], headers)));
  const learn = async () => {
    chain.mine();
    await service.chains[0]?.upstreams.heads.refresh();
    await readAll();
  };
  for (let block = 0; block < LEARNING_BLOCKS; block++) {
    await learn();
  }
  let refused = 0;
  return {
    opsUrl: service.opsUrl,
    begin: () => {
      liar.fault = { lies: [{ name: "a wrong balance", methods: ["eth_getBalance"], result: () => "0x7" }] };
    },
    // Each account is refused now and then, so that the liar is asked. The comparison has the values of both.
    call: async () => {
      const isLying = liar.fault !== undefined;
      if (isLying && refused++ % CALLS_BETWEEN_REFUSALS === 0) {
        first.fault = { lies: [refuseEach(ACCOUNTS.length)] };
      }
      return isLying ? readAll({ "cache-control": "no-cache" }) : learn();
    },
  };
};

/** Refuses this number of reads of balances. */
const refuseEach = (count: number): Lie => {
  let left = count;
  return {
    name: "refuses balances",
    methods: ["eth_getBalance"],
    response: (response) =>
      left-- > 0
        ? { id: response.id, jsonrpc: "2.0", error: { code: -32_000, message: "request timed out" } }
        : response,
  };
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
  "the only node returns errors that no one knows": {
    alerts: ["ForebayErrors", "ForebayNodeErrors"],
    start: async (t) => {
      const node = await startLiveNode(t);
      const { url, opsUrl } = await serve(t, { nodes: [{ url: node.url }] });
      node.faults.error = { code: -32_603, message: "zorp" };
      node.faults.methods = ["eth_getBalance"];
      return { opsUrl, call: () => readAccounts(url) };
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
    start: async (t) => withClient(await serveTwo(t, { url: (await startOnOtherBranch(t)).url })),
  },
  "a node is on another branch than two others": {
    alerts: ["ForebayNodeHeadsIgnored"],
    start: async (t) => {
      const chain = createLiveChain(t);
      const nodes = [await startOnOtherBranch(t), await startLiveNode(t, chain), await startLiveNode(t, chain)];
      return withClient(await serve(t, { nodes: nodes.map(({ url }) => ({ url })) }));
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
  "a node has got most of its units of the day": {
    alerts: ["ForebayNodeUnits"],
    start: async (t) => {
      const chain = createLiveChain(t);
      const { url: other } = await startLiveNode(t, chain);
      const { url, opsUrl } = await serveTwo(t, { url: other, unitsPerDay: 1 }, chain);
      return { opsUrl, call: () => readAccounts(url) };
    },
  },
  "two origins disagree on a balance": {
    alerts: ["ForebayNodesDisagree", "ForebayStateDifference"],
    start: (t) => startDisagreement(t),
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
      const service = await serve(t, { nodes: [{ url: node.url }] });
      // A busy process may not know the replaced blocks of the first one yet.
      let calls = 0;
      const call = async (): Promise<void> => {
        await rpc(service.url, "eth_blockNumber", []);
        calls += 1;
        if (calls % CALLS_PER_REORG === 0) {
          chain.reorg(REORG_BLOCKS, REORG_BLOCKS + 1);
        }
      };
      return { opsUrl: service.opsUrl, call };
    },
  },
};
