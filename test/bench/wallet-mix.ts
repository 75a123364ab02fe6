import { setTimeout as sleep } from "node:timers/promises";
import { untilReady } from "../support/servers/command.ts";
import { type Child, startChild } from "./support/child.ts";
import { type ForebayServer, startConfigured } from "./support/forebay.ts";
import { type BenchOptions, type BenchResult, round } from "./support/result.ts";
import { startWalletClients, type WalletClients } from "./support/walletClients.ts";
import {
  describeWallets,
  NO_SAMPLE,
  readStateCounts,
  type WalletFigures,
  type WalletSample,
} from "./support/walletFigures.ts";
import type { NodeCounts, NodesUrls, WalletNodesOptions, WalletSource } from "./support/walletNode.ts";
import { measureWalletTiers } from "./support/walletTiers.ts";

const POOLS = 30;
const QUOTES_PER_SECOND = 50;
const MANY_WALLETS = 500;
/** 500 wallets of six services are more than two cores can answer in time. */
const MANY_WALLETS_SHORT = 100;
const FEW_WALLETS = [1, 5, 20];
/** Time after the start until calls count: services then have read the chain. */
const SETTLE_MS = 3_000;
const MINUTE_MS = 60_000;
const FIRST_MS = 2 * MINUTE_MS;
const TIERS_MS = { healthyMs: 2 * MINUTE_MS, stoppedMs: MINUTE_MS };
const TIERS_SHORT_MS = { healthyMs: 10_000, stoppedMs: 6_000 };
/** `ONLY="trace;access list"` selects services by name; "own node first" is one. `BLOCKS=200` selects the chain with blocks of 200 ms. */
const only = process.env.ONLY?.split(";");
const onlyBlocks = process.env.BLOCKS;

interface Measured {
  readonly name: string;
  readonly source: WalletSource;
  readonly follow: "auto" | "plain" | "false";
  readonly wallets: number;
}

const measuredServices = ({ manyWallets: wallets, fewWallets }: Phases): readonly Measured[] =>
  [
    { name: "follow: false", source: "none", follow: "false", wallets } as const,
    { name: "feed", source: "feed", follow: "auto", wallets } as const,
    { name: "trace", source: "trace", follow: "auto", wallets } as const,
    { name: "access list", source: "accessList", follow: "auto", wallets } as const,
    { name: "plain reads, trace", source: "trace", follow: "plain", wallets } as const,
    { name: "no source", source: "none", follow: "auto", wallets } as const,
    ...fewWallets.flatMap((few) => [
      { name: `${few} wallets, follow: false`, source: "none", follow: "false", wallets: few } as const,
      { name: `${few} wallets, trace`, source: "trace", follow: "auto", wallets: few } as const,
    ]),
  ].filter(({ name }) => only === undefined || only.includes(name));

interface Running {
  readonly service: Measured;
  readonly server: ForebayServer;
  readonly clients: WalletClients;
}

/** Only blocks from Amsterdam on have access lists. */
const forkOf = (source: Measured["source"]): string => (source === "accessList" ? "amsterdam" : "prague");

/** Starts a service, and waits until it knows its chain. */
const startMeasured = async (service: Measured, urls: NodesUrls, { blockMs }: Phases) => {
  const nodes = [{ url: urls[service.name]?.url }];
  const feedUrl = urls[service.name]?.feedUrl;
  const chain = {
    ...{ name: "chain", nodes, blockTimeMs: blockMs, forks: forkOf(service.source) },
    pending: { feeds: feedUrl === undefined ? [] : [feedUrl] },
  };
  const server = await startConfigured({
    chains: [{ ...chain, ...stateOf(service) }],
    server: { port: 0, opsPort: 0 },
    log: { level: "info" },
  });
  await untilReady(server);
  return server;
};

const urlOf = ({ port }: ForebayServer): string => `http://127.0.0.1:${port}`;

const startServices = async (services: readonly Measured[], urls: NodesUrls, phases: Phases): Promise<Running[]> => {
  const servers = await Promise.all(services.map((service) => startMeasured(service, urls, phases)));
  await sleep(SETTLE_MS);
  return services.flatMap((service, index) => {
    const server = servers[index];
    if (server === undefined) {
      return [];
    }
    const quotesPerSecond = service.wallets === phases.manyWallets ? QUOTES_PER_SECOND : 0;
    const { wallets } = service;
    const clients = startWalletClients({ url: urlOf(server), wallets, pools: POOLS, quotesPerSecond });
    return [{ service, server, clients }];
  });
};

const stateOf = ({ follow, source }: Measured): object => ({
  state: {
    follow: follow === "false" ? false : follow,
    ...(source === "trace" && { source }),
    prove: false,
  },
});

interface Samples {
  readonly blocks: number;
  readonly services: ReadonlyMap<string, WalletSample>;
}

const readSamples = async (node: Child, running: readonly Running[]): Promise<Samples> => {
  node.send("counts");
  const { calls, blocks } = (await node.message()) as NodeCounts;
  const services = await Promise.all(
    running.map(async ({ service, server, clients }) => {
      const asked = Object.fromEntries(clients.calls);
      const sent = calls[service.name] ?? {};
      return [service.name, { asked, sent, ...(await readStateCounts(server.opsUrl)) }] as const;
    }),
  );
  return { blocks, services: new Map(services) };
};

interface Phases {
  readonly manyWallets: number;
  readonly fewWallets: readonly number[];
  readonly blockMs: number;
  readonly firstMs: number;
  readonly wholeMs: number;
}

/** With fewer blocks than this share, the machine was too slow for significant figures. */
const MIN_BLOCK_SHARE = 0.95;

/** Runs all services on one chain at once. Returns the rows of the first time, of its first half, and of the rest, by service. */
const measure = async (phases: Phases) => {
  const { manyWallets, blockMs, firstMs, wholeMs } = phases;
  if (onlyBlocks !== undefined && onlyBlocks !== String(blockMs)) {
    return [];
  }
  const services = measuredServices(phases);
  const node = startChild("walletNode.ts");
  let running: readonly Running[] = [];
  try {
    const options: WalletNodesOptions = {
      ...{ blockMs, wallets: manyWallets, pools: POOLS },
      nodes: services.map(({ name, source }) => ({ name, source })),
    };
    node.send(options);
    running = await startServices(services, (await node.message()) as NodesUrls, phases);
    const begin = await readSamples(node, running);
    await sleep(firstMs / 2);
    const minute = await readSamples(node, running);
    await sleep(firstMs / 2);
    const first = await readSamples(node, running);
    await sleep(wholeMs - firstMs);
    const last = await readSamples(node, running);
    const between = (before: Samples, after: Samples, name: string): WalletFigures =>
      describeWallets(before.services.get(name) ?? NO_SAMPLE, after.services.get(name) ?? NO_SAMPLE);
    const isSlow = last.blocks - begin.blocks < MIN_BLOCK_SHARE * (wholeMs / blockMs);
    return running.map(({ service: { name }, clients }) => ({
      ...{ blocks: `${blockMs} ms`, name, errors: clients.errors, hitP99Ms: p99Of(clients.hitsMs), isSlow },
      firstMinute: between(begin, minute, name),
      first: between(begin, first, name),
      later: between(first, last, name),
      whole: between(begin, last, name),
    }));
  } finally {
    await Promise.all(running.map(({ clients }) => clients.stop()));
    await Promise.all(running.map(({ server }) => server.end()));
    await node.end();
  }
};

const p99Of = (values: readonly number[]): number | undefined => {
  const value = values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.99)];
  return value && round(value, 1);
};

type Rows = Awaited<ReturnType<typeof measure>>;

/** Prints totals, then what the later time consists of. */
const print = (rows: Rows): void => {
  printTotals(rows);
  for (const { blocks, name, later } of rows) {
    const { percentByMethod, percentByPurpose, events } = later;
    console.log(JSON.stringify({ blocks, name, percentByMethod, percentByPurpose, events }));
  }
};

const printTotals = (rows: Rows): void => {
  console.table(
    rows.map(({ blocks, name, firstMinute, first, later, whole, errors, hitP99Ms }) => {
      const unfollowed = rows.find(
        (row) => row.name === name.replace(/(plain reads, trace|trace|feed|access list|no source)$/, "follow: false"),
      );
      return {
        ...{ blocks, name, errors, "hits, p99 ms": hitP99Ms },
        "calls per 1,000, first": first.callsPerThousand,
        "calls, later": later.callsPerThousand,
        "units per 1,000, first": first.unitsPerThousand,
        "units, later": later.unitsPerThousand,
        "% of direct, first minute": round(100 * firstMinute.ofDirect, 1),
        "% of direct, first": round(100 * first.ofDirect, 1),
        "% of direct, later": round(100 * later.ofDirect, 1),
        "of it eth_call": later.percentByMethod.eth_call ?? 0,
        "first / follow: false": round(first.unitsPerThousand / (unfollowed?.first.unitsPerThousand ?? 0), 2),
        "whole / follow: false": round(whole.unitsPerThousand / (unfollowed?.whole.unitsPerThousand ?? 0), 2),
      };
    }),
  );
};

const shareOf = (rows: Rows, name: string): number =>
  rows.find((row) => row.name === name)?.later.ofDirect ?? Number.NaN;

/** Puts the own node first, and a provider behind it. The own node is stopped for a time. Returns the units at the provider. */
const measureTiers = async (short: boolean, wallets: number) => {
  if (only !== undefined && !only.includes("own node first")) {
    return {};
  }
  const { healthy, back, usedAfterMs, errors } = await measureWalletTiers({
    ...{ blockMs: 2_000, wallets, pools: POOLS, quotesPerSecond: QUOTES_PER_SECOND },
    ...(short ? TIERS_SHORT_MS : TIERS_MS),
  });
  console.table({ "own node works": healthy, "own node is back for 5 s": back });
  return {
    secondTierUnits: healthy.other,
    secondTierOpinions: healthy.opinions,
    secondTierHeads: healthy.heads,
    secondTierUsedAfterMs: usedAfterMs,
    secondTierUnitsAfterReturn: back.other,
    secondTierErrors: errors,
  };
};

/** Counts the calls and units of wallets and quotes that read at `latest`, against asking the node directly. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const manyWallets = short ? MANY_WALLETS_SHORT : MANY_WALLETS;
  const slow = await measure({
    ...(short
      ? { fewWallets: [], firstMs: 8_000, wholeMs: 16_000 }
      : { fewWallets: FEW_WALLETS, firstMs: FIRST_MS, wholeMs: 10 * MINUTE_MS }),
    ...{ manyWallets, blockMs: 2_000 },
  });
  print(slow);
  const fast = await measure({
    ...(short
      ? { fewWallets: [], firstMs: 4_000, wholeMs: 8_000 }
      : { fewWallets: FEW_WALLETS, firstMs: FIRST_MS, wholeMs: 5 * MINUTE_MS }),
    ...{ manyWallets, blockMs: 200 },
  });
  print(fast);
  const tiers = await measureTiers(short, manyWallets);
  const ours = shareOf(slow, "trace");
  const yardstick = shareOf(slow, "follow: false");
  return {
    claim: "units of reads at latest, as a share of asking the node directly, against follow: false",
    ratio: round(yardstick / ours),
    ours,
    yardstick,
    unit: "share of the units of asking directly",
    unreadable: [...slow, ...fast].some(({ isSlow }) => isSlow),
    feed: shareOf(slow, "feed"),
    accessList: shareOf(slow, "access list"),
    plainReads: shareOf(slow, "plain reads, trace"),
    noSource: shareOf(slow, "no source"),
    fastBlocks: shareOf(fast, "trace"),
    fastBlocksFeed: shareOf(fast, "feed"),
    fastBlocksAccessList: shareOf(fast, "access list"),
    fastBlocksUnfollowed: shareOf(fast, "follow: false"),
    ...tiers,
    errors: [...slow, ...fast].reduce((total, { errors }) => total + errors, 0) + (tiers.secondTierErrors ?? 0),
  };
};
