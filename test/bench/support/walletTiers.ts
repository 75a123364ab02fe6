import { setTimeout as sleep } from "node:timers/promises";
import { startChild } from "./child.ts";
import { startConfigured } from "./forebay.ts";
import { round } from "./result.ts";
import { startWalletClients, type WalletLoad } from "./walletClients.ts";
import { type Counts, readStateCounts, subtract, unitsIn, withoutHeads } from "./walletFigures.ts";
import type { NodeCounts, NodesUrls, WalletNodeChange, WalletNodesOptions } from "./walletNode.ts";

export interface WalletTiersOptions extends Omit<WalletLoad, "url"> {
  readonly blockMs: number;
  /** Time in which both nodes work. */
  readonly healthyMs: number;
  /** Time in which the node of the first tier is stopped. */
  readonly stoppedMs: number;
}

/** Units at the second tier per 1,000 calls of clients. */
export interface TierUnits {
  readonly heads: number;
  /** Comparisons of known values with another origin. */
  readonly opinions: number;
  readonly other: number;
}

/** The second of two tiers: the own node is first, and a provider behind it. */
export interface WalletTiersFigures {
  readonly healthy: TierUnits;
  /** Time from the stop of the first tier until the second one is asked. */
  readonly usedAfterMs: number;
  /** From 5 s after the first tier is back. */
  readonly back: TierUnits;
  /** Calls of clients that failed. */
  readonly errors: number;
}

const OWN = "own";
const PROVIDER = "provider";
const SETTLE_MS = 3_000;
/** The second tier may be used for this time after the first one is back. */
const RETURN_MS = 5_000;
const POLL_MS = 50;
/** A second tier that is not used by then is not used at all. */
const MAX_UNUSED_MS = 10_000;
interface Sample {
  readonly asked: number;
  /** Calls to the provider by method. */
  readonly sent: Counts;
  /** Units that forebay spent to follow state, by purpose. */
  readonly spent: Counts;
}

const describeUnits = (before: Sample, after: Sample): TierUnits => {
  const sent = subtract(after.sent, before.sent);
  const spent = subtract(after.spent, before.spent);
  const units = unitsIn(withoutHeads(sent));
  const opinions = Math.min(units, (spent.sample ?? 0) + (spent.check ?? 0));
  const perThousand = (part: number): number => round((part * 1_000) / (after.asked - before.asked), 1);
  return {
    heads: perThousand(unitsIn(sent) - units),
    opinions: perThousand(opinions),
    other: perThousand(units - opinions),
  };
};

/** Counts what a provider in the second tier is asked for while the own node works, is stopped, and is back. */
export const measureWalletTiers = async (options: WalletTiersOptions): Promise<WalletTiersFigures> => {
  const { blockMs, wallets, pools, quotesPerSecond, healthyMs, stoppedMs } = options;
  const nodes = startChild("walletNode.ts");
  const ask = (message: WalletNodesOptions | WalletNodeChange | "counts"): Promise<unknown> => {
    nodes.send(message);
    return nodes.message();
  };
  const countProvider = async (): Promise<Counts> => ((await ask("counts")) as NodeCounts).calls[PROVIDER] ?? {};
  const sources = [OWN, PROVIDER].map((name) => ({ name, source: "trace" as const }));
  const urls = (await ask({ blockMs, wallets, pools, nodes: sources })) as NodesUrls;
  const server = await startConfigured({
    chains: [
      {
        ...{ name: "chain", blockTimeMs: blockMs, forks: "prague", state: { source: "trace" } },
        nodes: [OWN, PROVIDER].map((name, priority) => ({ name, url: urls[name]?.url, priority })),
      },
    ],
    server: { port: 0, opsPort: 0 },
    log: { level: "info" },
  });
  const clients = startWalletClients({ url: `http://127.0.0.1:${server.port}`, wallets, pools, quotesPerSecond });
  try {
    const sample = async (): Promise<Sample> => ({
      asked: [...clients.calls.values()].reduce((sum, count) => sum + count, 0),
      sent: await countProvider(),
      spent: (await readStateCounts(server.opsUrl)).spent,
    });
    /** The units of the healthy time from now on. */
    const measureHealthy = async (): Promise<TierUnits> => {
      const before = await sample();
      await sleep(healthyMs);
      return describeUnits(before, await sample());
    };
    await sleep(SETTLE_MS);
    const healthy = await measureHealthy();

    await ask({ isStopped: true, name: OWN });
    const stopMs = performance.now();
    const stopped = await countProvider();
    const isUsed = async () => unitsIn(withoutHeads(subtract(await countProvider(), stopped))) > 0;
    while (!(await isUsed()) && performance.now() - stopMs < MAX_UNUSED_MS) {
      await sleep(POLL_MS);
    }
    const usedAfterMs = Math.round(performance.now() - stopMs);
    await sleep(Math.max(0, stoppedMs - usedAfterMs));

    await ask({ isStopped: false, name: OWN });
    await sleep(RETURN_MS);
    const back = await measureHealthy();
    return { healthy, usedAfterMs, back, errors: clients.errors };
  } finally {
    await clients.stop();
    await server.end();
    await nodes.end();
  }
};
