import { setTimeout as sleep } from "node:timers/promises";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createWalletCalls, type WalletCall } from "../support/standIn/walletWorld.ts";
import { startChild } from "./support/child.ts";
import { alternate, type Server } from "./support/compareServers.ts";
import { cpuResult } from "./support/cpuResult.ts";
import type { BenchOptions, BenchResult } from "./support/result.ts";
import type { NodesUrls, WalletNodesOptions } from "./support/walletNode.ts";
import type { WalletServiceOptions } from "./support/walletService.ts";

const CLAIM = "a plain read of known state costs at most 1.2 times the CPU of a hit in memory: at least 0.83";
const WALLETS = 20;
const BLOCK_MS = 1_000;
const COMPILE_MS = 4_000;

const balanceOf = (wallet: number): WalletCall => {
  const call = createWalletCalls(wallet)(false).find(({ method }) => method === "eth_getBalance");
  if (call === undefined) {
    throw new Error("a wallet reads its balance");
  }
  return call;
};
const FIRST = balanceOf(0);

interface StartedService {
  readonly server: Server;
  readonly url: string;
}

const startService = async (options: WalletServiceOptions): Promise<StartedService> => {
  const child = startChild("walletService.ts");
  child.send(options);
  const port = (await child.message()) as number;
  return { server: { port, path: "/", pids: [child.pid], end: child.end }, url: `http://127.0.0.1:${port}` };
};

/** Repeats reads of all wallets until the first one is a hit of this kind. */
const warm = ({ url }: StartedService, kind: string): Promise<void> =>
  until(async () => {
    for (let wallet = 1; wallet < WALLETS; wallet++) {
      const { method, params } = balanceOf(wallet);
      await rpc(url, method, params);
    }
    const response = await rpc(url, FIRST.method, FIRST.params);
    return response.headers.get("cache-status")?.includes(`detail=${kind}`) === true;
  }, `the balance is a hit: ${kind}`);

/** Compares the CPU time of a read of known state with that of the same read from the memory cache. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const node = startChild("walletNode.ts");
  const started: StartedService[] = [];
  try {
    const options: WalletNodesOptions = {
      ...{ blockMs: BLOCK_MS, wallets: WALLETS, pools: 1 },
      nodes: [
        { name: "known", source: "accessList" },
        { name: "memory", source: "none" },
      ],
    };
    node.send(options);
    const urls = (await node.message()) as NodesUrls;
    const ours = await startService({
      ...{ nodeUrl: urls.known?.url ?? "", forks: "amsterdam", blockMs: BLOCK_MS, state: {} },
    });
    started.push(ours);
    const yardstick = await startService({
      ...{ nodeUrl: urls.memory?.url ?? "", forks: "prague", blockMs: BLOCK_MS, state: { follow: false } },
    });
    started.push(yardstick);
    await warm(ours, "state");
    // No further block ends the response in memory.
    node.send("stop");
    await node.message();
    await sleep(2 * BLOCK_MS);
    await Promise.all([warm(ours, "state"), warm(yardstick, "memory")]);
    const load = {
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...FIRST }),
      connections: 32,
      warmMs: short ? 500 : 1_000,
      measureMs: short ? 1_000 : 4_000,
    };
    await alternate(ours.server, yardstick.server, { ...load, measureMs: COMPILE_MS }, 1);
    const results = await alternate(ours.server, yardstick.server, load, short ? 5 : 9);
    return { claim: CLAIM, ...cpuResult(results) };
  } finally {
    await Promise.all(started.map(({ server }) => server.end()));
    await node.end();
  }
};
