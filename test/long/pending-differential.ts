import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { ChainForks } from "../../src/chain/rules.ts";
import type { PendingView, View } from "../../src/chain/view.ts";
import { createDevnet, type Devnet, type DevnetOptions } from "../devnet/devnet.ts";
import { createFeedServer, type FeedServer } from "../devnet/feedServer.ts";
import type { Flashblock } from "../devnet/flashblock.ts";
import { startTraffic } from "../devnet/traffic.ts";
import {
  differencesOf,
  isDeployed,
  readNodePending,
  readView,
  type Watched,
  watchTraffic,
} from "../support/comparePending.ts";
import { createDevnetPending } from "../support/devnetPending.ts";
import { nodeState } from "../support/nodeState.ts";

const RATE = 30;
const WHOLE_SECONDS = 240;
const MAX_SHOWN = 20;
/** So many flashblocks may go by uncompared, because the next one came while the node was still answering. */
const MAX_SKIPPED_SHARE = 0.25;
const ARRIVAL_TIMEOUT_MS = 1_500;

interface Variant {
  readonly name: string;
  readonly devnet: DevnetOptions;
  readonly forks: (chainId: bigint) => ChainForks;
  /** Milliseconds that a sealed block is known to us after it is sealed. */
  readonly sealedDelayMs?: number;
  /** Milliseconds that messages come after they were made. */
  readonly feedDelayMs?: number;
  /** Of the first of two feeds. */
  readonly losses?: number;
}

const isthmus = (chainId: bigint): ChainForks => ({
  chainId,
  activations: [],
  blobs: {},
  op: { regolith: 0n, canyon: 0n, ecotone: 0n, fjord: 0n, granite: 0n, holocene: 0n, isthmus: 0n },
});
const prague = (chainId: bigint): ChainForks => ({
  chainId,
  activations: [{ fork: "prague", block: 0n }],
  blobs: {},
});

const VARIANTS: readonly Variant[] = [
  { name: "deposits, receipts in the metadata", devnet: { generation: "a" }, forks: isthmus },
  { name: "brotli, nothing in the metadata", devnet: { generation: "f", encoding: "brotli" }, forks: isthmus },
  { name: "without deposits", devnet: { network: "ethereum", generation: "e" }, forks: prague },
  { name: "sealed 500 ms after the next index 0", devnet: { generation: "c" }, forks: isthmus, sealedDelayMs: 500 },
  { name: "sealed 500 ms before the next index 0", devnet: { generation: "d" }, forks: isthmus, feedDelayMs: 500 },
  { name: "a second feed, one of them loses 5 %", devnet: { generation: "b" }, forks: isthmus, losses: 0.05 },
];

interface Tally {
  flashblocks: number;
  compared: number;
  skipped: number;
  unproven: number;
  readonly differences: string[];
}

type Rig = Awaited<ReturnType<typeof createDevnetPending>>;

/** The view that holds this message, executed; or the last that held it. */
const arrived = async (rig: Rig, hash: string): Promise<PendingView | undefined> => {
  const { promise, resolve } = Promise.withResolvers<PendingView | undefined>();
  let last: PendingView | undefined;
  const look = ({ pending }: View) => {
    if (pending?.newest?.hash !== hash) return;
    last = pending;
    if (pending.stateFrom === "view") resolve(pending);
  };
  const stop = rig.pending.subscribe(({ view }) => look(view));
  look(rig.pending.view());
  const timer = setTimeout(() => resolve(last), ARRIVAL_TIMEOUT_MS);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    stop();
  }
};

const compare = async (rig: Rig, watched: Watched, message: Flashblock, tally: Tally): Promise<void> => {
  tally.flashblocks++;
  const [view, theirs] = await Promise.all([arrived(rig, message.diff.block_hash), readNodePending(rig.ask, watched)]);
  if (view && view.stateFrom !== "view") tally.unproven++;
  if (!view || !theirs || view.stateFrom !== "view") {
    tally.skipped++;
    return;
  }
  const ours = await readView(view, nodeState(rig.ask, view.base), watched);
  // The node had begun the next message before it was read.
  if (ours.get("block transactions") !== theirs.get("block transactions")) {
    tally.skipped++;
    return;
  }
  tally.compared++;
  for (const difference of differencesOf(ours, theirs)) {
    if (tally.differences.length < MAX_SHOWN) tally.differences.push(`${view.id} ${difference}`);
  }
};

/** A feed that brings the devnet's messages later. */
const delayMessages = async (devnet: Devnet, delayMs: number): Promise<FeedServer> => {
  const late = await createFeedServer("text");
  devnet.events.on("message", (message) => setTimeout(() => late.send(message), delayMs));
  return late;
};

/** A second feed beside the devnet's own, which from now on loses messages. */
const loseMessages = async (devnet: Devnet, share: number): Promise<FeedServer> => {
  const second = await createFeedServer("text");
  devnet.events.on("message", (message) => {
    second.send(message);
    if (Math.random() < share) devnet.faults.drop();
  });
  return second;
};

const runOn = async (devnet: Devnet, variant: Variant, seconds: number) => {
  const chainId = BigInt(devnet.chainId);
  const second = variant.losses ? await loseMessages(devnet, variant.losses) : undefined;
  const late = variant.feedDelayMs ? await delayMessages(devnet, variant.feedDelayMs) : undefined;
  const feedUrls = late ? [late.url] : [devnet.feedUrl ?? [], second?.url ?? []].flat();
  const rig = await createDevnetPending(devnet, { forks: variant.forks(chainId), feedUrls });
  const tally: Tally = { flashblocks: 0, compared: 0, skipped: 0, unproven: 0, differences: [] };
  const look = async () => {
    await sleep(variant.sealedDelayMs ?? 0);
    await rig.heads.look();
  };
  devnet.events.on("sealed", () => void look().catch((error: unknown) => tally.differences.push(String(error))));
  const traffic = await startTraffic({ url: devnet.url, chainId: devnet.chainId, rate: RATE });
  const comparing = new Set<Promise<void>>();
  try {
    while (!(await isDeployed(rig.ask, traffic.token))) await once(devnet.events, "sealed");
    const watched = watchTraffic(traffic.token);
    const start = (message: Flashblock) => {
      const running = compare(rig, watched, message, tally).catch((error: unknown) => {
        tally.differences.push(String(error));
      });
      comparing.add(running);
      void running.finally(() => comparing.delete(running));
    };
    devnet.events.on("message", start);
    await sleep(seconds * 1_000);
    devnet.events.off("message", start);
    await Promise.all(comparing);
    return {
      ...tally,
      sent: traffic.sent,
      refused: traffic.errors.length,
      mismatches: await countedBy(rig, "pendingMismatches", "what"),
      messages: await countedBy(rig, "feedMessages", "decision"),
      vanished: await countedBy(rig, "pendingVanished", "chain"),
      failures: [...rig.failures, ...devnet.failures].map(String),
      stateReads: rig.reads(),
    };
  } finally {
    await traffic.stop();
    await rig.pending.close();
    await second?.close();
    await late?.close();
  }
};

const countedBy = async (rig: Rig, name: "pendingMismatches" | "feedMessages" | "pendingVanished", label: string) => {
  const { values } = await rig.telemetry.metrics[name].get();
  return Object.fromEntries(values.map(({ labels, value }) => [new Map(Object.entries(labels)).get(label), value]));
};

const only = process.env.VARIANT;

/** At every flashblock, what `pending` is here against what it is on the node that builds it. */
export const long = async ({ seconds }: { readonly seconds: number | undefined }) => {
  const each = Math.max((seconds ?? WHOLE_SECONDS) / VARIANTS.length, 8);
  const variants: Record<string, unknown> = {};
  let passed = true;
  for (const variant of VARIANTS.filter(({ name }) => only === undefined || name.includes(only))) {
    const devnet = await createDevnet(variant.devnet);
    try {
      const result = await runOn(devnet, variant, each);
      console.log(variant.name, JSON.stringify(result));
      variants[variant.name] = result;
      passed &&=
        result.differences.length === 0 &&
        result.compared > 0 &&
        result.skipped <= result.flashblocks * MAX_SKIPPED_SHARE &&
        result.failures.length === 0;
    } finally {
      await devnet.close();
    }
  }
  return { passed, variants };
};
