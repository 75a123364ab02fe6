import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startRedis } from "../support/servers/redis.ts";
import { startChild } from "./support/child.ts";
import {
  measureRestart,
  nodesOf,
  type RestartFigures,
  type RestartKind,
  type RestartOptions,
} from "./support/restartedService.ts";
import { type BenchOptions, type BenchResult, round } from "./support/result.ts";
import type { Counts } from "./support/walletFigures.ts";
import type { NodeCounts, NodesUrls, WalletNodesOptions } from "./support/walletNode.ts";

const POOLS = 30;
const QUOTES_PER_SECOND = 50;
/** "nothing kept" has neither a folder nor Redis: the yardstick. */
const KINDS = ["nothing kept", "SIGTERM", "SIGKILL", "new machine", "reload"] as const;
const KINDS_SHORT: readonly RestartKind[] = ["nothing kept", "SIGTERM"];
/** `ONLY="SIGTERM;reload"` selects kinds of restarts. `BLOCKS=200` selects the chain with blocks of 200 ms. */
const only = process.env.ONLY?.split(";");
const onlyBlocks = process.env.BLOCKS;

type Shape = Pick<RestartOptions, "wallets" | "settleMs" | "measuredMs" | "windowsMs">;

const WHOLE: Shape = {
  wallets: 200,
  // The learning of a chain with many wallets has ended then.
  settleMs: 450_000,
  measuredMs: 60_000,
  windowsMs: [10_000, 30_000, 90_000],
};
const SHORT: Shape = {
  wallets: 50,
  settleMs: 20_000,
  measuredMs: 8_000,
  windowsMs: [10_000, 20_000],
};

interface Row extends RestartFigures {
  readonly kind: RestartKind;
  readonly blockMs: number;
}

/** Ends what was started, the newest first. */
type Ends = (() => unknown)[];

const keptIn = async (kind: RestartKind, ends: Ends): Promise<Pick<RestartOptions, "dataDir" | "redis">> => {
  if (kind === "nothing kept") {
    return {};
  }
  if (kind === "new machine") {
    return { redis: (await startRedis({ after: (end) => ends.unshift(end) })).url };
  }
  const folder = await mkdtemp(join(tmpdir(), "forebay-bench-"));
  ends.unshift(() => rm(folder, { recursive: true, force: true }));
  return { dataDir: join(folder, "data") };
};

/** Restarts a service of each kind at once, all on one chain. */
const measure = async (kinds: readonly RestartKind[], blockMs: number, shape: Shape): Promise<readonly Row[]> => {
  if (onlyBlocks !== undefined && onlyBlocks !== String(blockMs)) {
    return [];
  }
  const ends: Ends = [];
  try {
    const nodes = startChild("walletNode.ts");
    ends.unshift(() => nodes.end());
    const sources = kinds.flatMap(nodesOf).map((name) => ({ name, source: "trace" as const }));
    const { wallets } = shape;
    nodes.send({ blockMs, wallets, pools: POOLS, nodes: sources } satisfies WalletNodesOptions);
    const urls = (await nodes.message()) as NodesUrls;
    const count = createCounter(async () => {
      nodes.send("counts");
      return ((await nodes.message()) as NodeCounts).calls;
    });
    return await Promise.all(
      kinds.map(async (kind) => {
        const kept = await keptIn(kind, ends);
        const countSent = () => count(nodesOf(kind));
        const options = { ...shape, ...kept, kind, urls, blockMs, pools: POOLS, quotesPerSecond: QUOTES_PER_SECOND };
        return { kind, blockMs, ...(await measureRestart({ ...options, countSent })) };
      }),
    );
  } finally {
    for (const end of ends) {
      await end();
    }
  }
};

/** Returns a function that sums the calls to some nodes, by method. The process of the nodes is asked once at a time. */
const createCounter = (ask: () => Promise<NodeCounts["calls"]>) => {
  let last: Promise<unknown> = Promise.resolve();
  return async (names: readonly string[]): Promise<Counts> => {
    const asked = last.then(ask);
    last = asked;
    const calls = await asked;
    const sums: Record<string, number> = {};
    for (const [method, number] of names.flatMap((name) => Object.entries(calls[name] ?? {}))) {
      sums[method] = (sums[method] ?? 0) + number;
    }
    return sums;
  };
};

const percent = (share: number | undefined): number => round(100 * (share ?? Number.NaN), 1);

/** Prints the shares, then what the windows consist of. */
const print = (rows: readonly Row[], windowsMs: readonly number[]): void => {
  console.table(
    rows.map(({ kind, blockMs, settled, unitsUntilReady, windows, errors }) => ({
      ...{
        blocks: `${blockMs} ms`,
        kind,
        "settled, %": percent(settled.ofDirect),
        "units until ready": unitsUntilReady,
      },
      ...Object.fromEntries(
        windows.map(({ ofDirect }, index) => [`until ${(windowsMs[index] ?? 0) / 1_000} s, %`, percent(ofDirect)]),
      ),
      errors,
    })),
  );
  for (const { blockMs, kind, settled, windows } of rows) {
    for (const { percentByMethod, percentByPurpose, events } of [settled, ...windows]) {
      console.log(JSON.stringify({ blockMs, kind, percentByMethod, percentByPurpose, events }));
    }
  }
};

/** Counts the units that nodes are asked for after a restart, as a share of asking them directly. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const shape = short ? SHORT : WHOLE;
  const selected = KINDS.filter((kind) => only?.includes(kind) ?? (!short || KINDS_SHORT.includes(kind)));
  const rows: Row[] = [];
  for (const blockMs of short ? [2_000] : [2_000, 200, 12_000]) {
    const measured = await measure(selected, blockMs, shape);
    print(measured, shape.windowsMs);
    rows.push(...measured);
  }
  const shareOf = (kind: RestartKind, window: number): number =>
    rows.find((row) => row.kind === kind)?.windows.at(window)?.ofDirect ?? Number.NaN;
  const ours = shareOf("SIGTERM", 0);
  const yardstick = shareOf("nothing kept", 0);
  return {
    claim:
      "units in the first 10 s after a restart, as a share of asking the node directly, against a start with nothing",
    ...{ ratio: round(yardstick / ours), ours, yardstick },
    unit: "share of the units of asking directly",
    settled: rows.find(({ kind }) => kind === "SIGTERM")?.settled.ofDirect ?? Number.NaN,
    last: shareOf("SIGTERM", -1),
    yardstickLast: shareOf("nothing kept", -1),
    errors: rows.reduce((total, { errors }) => total + errors, 0),
  };
};
