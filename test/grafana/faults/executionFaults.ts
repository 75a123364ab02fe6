import { startAnvil } from "../../devnet/anvil.ts";
import { rpc } from "../../support/clients/rpc.ts";
import type { Lifespan } from "../../support/servers/redis.ts";
import { createLiveChain, startLiveNode } from "../liveNode.ts";
import type { AlertFault } from "./alertFault.ts";
import { serve } from "./nodeFaults.ts";

const HOODI = 560_048;
/** Fields of a fork that this chain does not have. */
const UNKNOWN_FIELDS = { blockAccessListHash: `0x${"ab".repeat(32)}`, slotNumber: "0x7" };
const CONTRACT = `0x${"cc".repeat(20)}`;
/** Returns 1. */
const RETURNS = "0x60015f5260205ff3";
/** JUMPDEST, PUSH0, JUMP. */
const ENDLESS = "0x5b5f56";
const MUCH_GAS = 1_000_000_000_000;
/** After these, reads show that it pays to follow the state. */
const BLOCKS = 6;
const SHORT_MS = 300;
/** Longer than the shortened alert waits. */
const LONG_MS = 20_000;
/** Simulations in flight, so that the worker has the next one at once. */
const IN_FLIGHT = 3;
const ACCOUNTS = Array.from({ length: 8 }, (_, index) => `0x${`${index}`.repeat(40)}`);

const EMPTY_STATE = {
  eth_getCode: () => "0x",
  eth_getTransactionCount: () => "0x0",
  eth_getBalance: () => "0x0",
  eth_getStorageAt: () => `0x${"0".repeat(64)}`,
};

const simulate = (url: string, code: string) => {
  const gasLimit = `0x${MUCH_GAS.toString(16)}`;
  const block = {
    blockOverrides: { gasLimit },
    stateOverrides: { [CONTRACT]: { code } },
    calls: [{ to: CONTRACT, gas: gasLimit }],
  };
  return rpc(url, "eth_simulateV1", [{ blockStateCalls: [block] }, "latest"]);
};

/** Starts a service with one worker thread, whose clients send simulations that only their deadline ends. */
const startEndless = async (t: Lifespan, timeoutMs: number) => {
  const node = await startLiveNode(t, createLiveChain(t), EMPTY_STATE);
  const { url, opsUrl } = await serve(t, {
    nodes: [{ url: node.url }],
    forks: "prague",
    simulate: { timeoutMs, workers: 1, gasCap: MUCH_GAS },
  });
  const running: Promise<unknown>[] = [];
  const call = async (): Promise<unknown> => {
    // The last ones end with the service.
    running.push(Promise.allSettled([simulate(url, ENDLESS)]));
    return running.length < IN_FLIGHT ? undefined : running.shift();
  };
  return { opsUrl, call };
};

export const EXECUTION_FAULTS: Readonly<Record<string, AlertFault>> = {
  "simulations take longer than their deadline": {
    alerts: ["ForebaySimulateDeadline"],
    start: (t) => startEndless(t, SHORT_MS),
  },
  "a simulation uses the only worker thread": {
    alerts: ["ForebayWorkersBusy"],
    start: (t) => startEndless(t, LONG_MS),
  },
  "a fork is active that this version does not know": {
    alerts: ["ForebayRulesUnknown"],
    start: async (t) => {
      const chain = createLiveChain(t, { chainId: HOODI });
      const blockOf = (tag: unknown) =>
        (tag === "latest" ? chain.latest : chain.blocks[Number(tag)])?.json ?? chain.blocks.at(-10)?.json;
      const { url } = await startLiveNode(t, chain, {
        ...EMPTY_STATE,
        eth_getBlockByNumber: ([tag]) => ({ ...blockOf(tag), ...UNKNOWN_FIELDS }),
        eth_getBlockByHash: ([hash]) => ({ ...chain.byHash(hash)?.json, ...UNKNOWN_FIELDS }),
      });
      const service = await serve(t, { nodes: [{ url }] });
      return { opsUrl: service.opsUrl, call: () => simulate(service.url, RETURNS) };
    },
  },
  "the state changes inside a block": {
    alerts: ["ForebayStateDifference"],
    start: async (t) => {
      const anvil = await startAnvil(["--no-mining"]);
      t.after(() => anvil.close());
      const service = await serve(t, {
        nodes: [{ url: anvil.url }],
        blockTimeMs: LONG_MS,
        forks: "prague",
        state: { waitMs: LONG_MS, source: "trace", follow: "plain" },
      });
      const read = (account: string | undefined, headers = {}) =>
        rpc(service.url, "eth_getBalance", [account, "latest"], headers);
      const mine = async (): Promise<void> => {
        await anvil.call("evm_mine");
        await service.chains[0]?.upstreams.heads.refresh();
        for (const account of ACCOUNTS) {
          await read(account);
        }
      };
      let balance = 0;
      const call = async (): Promise<void> => {
        for (let block = 0; block < BLOCKS; block++) {
          await mine();
        }
        const [account] = ACCOUNTS;
        await anvil.call("anvil_setBalance", account, `0x${(++balance).toString(16)}`);
        await read(account, { "cache-control": "no-cache" });
      };
      return { opsUrl: service.opsUrl, call };
    },
  },
};
