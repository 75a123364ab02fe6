import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createService, type Service } from "../support/servers/service.ts";
import { StandInChain } from "../support/standIn/standInChain.ts";
import { StandInNode } from "../support/standIn/standInNode.ts";
import { createWalletCalls, type WalletCall, WalletWorld } from "../support/standIn/walletWorld.ts";
import { type BenchOptions, type BenchResult, median, round } from "./support/result.ts";

const CLAIM = "a multicall of 20 balances is executed again here in at most 1 ms";
const MAX_MS = 1;
const WALLETS = 20;
const MAX_LEARNING_BLOCKS = 20;
const MICROSECONDS = 1_000;

const balancesOf = (wallet: number): WalletCall => {
  const call = createWalletCalls(wallet)(false).find(({ method }) => method === "eth_call");
  if (call === undefined) {
    throw new Error("a wallet calls for its balances");
  }
  return call;
};

interface Asked {
  readonly ms: number;
  readonly isHit: boolean;
}

const ask = async ({ url }: Service, wallet: number): Promise<Asked> => {
  const { method, params } = balancesOf(wallet);
  const startMs = performance.now();
  const response = await rpc(url, method, params);
  const ms = performance.now() - startMs;
  return { ms, isHit: response.headers.get("cache-status")?.includes("detail=state") === true };
};

/** The calls of all wallets, one after the other. */
const askAll = async (service: Service) => {
  const cpu = process.cpuUsage();
  const asked: Asked[] = [];
  for (let wallet = 0; wallet < WALLETS; wallet++) {
    asked.push(await ask(service, wallet));
  }
  const { user, system } = process.cpuUsage(cpu);
  return { asked, cpuMs: (user + system) / MICROSECONDS / WALLETS };
};

const countReruns = async ({ telemetry }: Service): Promise<number> => {
  const { values } = await telemetry.metrics.stateAnswers.get();
  return values.reduce((sum, { labels, value }) => sum + (labels.event === "recomputed" ? value : 0), 0);
};

/** Seals a block that writes a balance of each wallet, and waits until its write set is known. */
const writeAll = async (world: WalletWorld, chain: StandInChain, service: Service): Promise<void> => {
  world.mineTransfers();
  const { hash } = chain.latest;
  const heads = service.chains[0]?.upstreams.heads;
  const isServed = async () => {
    // Blocks of a fast chain are linked only for clients.
    await rpc(service.url, "eth_blockNumber", []);
    return heads?.current()?.latest.hash === hash;
  };
  await until(isServed, "the block is served");
  // A read at the new head waits for its write set.
  await rpc(service.url, "eth_getBalance", createWalletCalls(0)(false)[2]?.params ?? []);
};

const measure = async (world: WalletWorld, chain: StandInChain, service: Service, blocks: number) => {
  const reruns: number[] = [];
  const hits: number[] = [];
  const rerunCpu: number[] = [];
  const hitCpu: number[] = [];
  let learning = 0;
  while (reruns.length < blocks * WALLETS) {
    await writeAll(world, chain, service);
    const before = await countReruns(service);
    const ended = await askAll(service);
    if ((await countReruns(service)) - before < WALLETS) {
      learning++;
      if (learning > MAX_LEARNING_BLOCKS) {
        throw new Error("the calls are not executed here");
      }
      continue;
    }
    const again = await askAll(service);
    reruns.push(...ended.asked.map(({ ms }) => ms));
    rerunCpu.push(ended.cpuMs);
    hits.push(...again.asked.map(({ ms }) => ms));
    hitCpu.push(again.cpuMs);
  }
  return { reruns: median(reruns), hits: median(hits), cpuMs: median(rerunCpu) - median(hitCpu) };
};

/** Measures how much longer a call takes that is executed again than one whose answer is valid. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const chain = new StandInChain("amsterdam");
  const world = new WalletWorld(chain, { wallets: WALLETS, pools: 1, seed: 1 });
  await world.genesis();
  world.mine();
  const node = await StandInNode.start({ chain, hasAccessLists: true });
  const service = await createService({ nodes: [{ url: node.url }], forks: "amsterdam", blockTimeMs: MICROSECONDS });
  try {
    const { reruns, hits, cpuMs } = await measure(world, chain, service, short ? 10 : 50);
    const ours = reruns - hits;
    return {
      claim: CLAIM,
      ratio: round(MAX_MS / ours),
      ours: round(ours),
      yardstick: MAX_MS,
      unit: "ms more than a valid answer, the median",
      cpuMs: round(cpuMs),
      rerunMs: round(reruns),
      hitMs: round(hits),
    };
  } finally {
    await service.close();
    await node.close();
  }
};
