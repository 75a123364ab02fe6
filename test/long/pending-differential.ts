import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { createDevnet, type Devnet, type DevnetOptions } from "../devnet/devnet.ts";
import { createFeedServer, type FeedServer } from "../devnet/feedServer.ts";
import type { Flashblock } from "../devnet/flashblock.ts";
import { startTraffic } from "../devnet/traffic.ts";
import { type Front, type FrontResponse, forwardTo, startFront } from "../support/fakes/front.ts";
import { createService, type Service } from "../support/servers/service.ts";
import {
  type Batch,
  createBatch,
  differencesOf,
  type PendingValues,
  randomCalls,
  readNodePending,
  readPending,
  type Watched,
  watchTraffic,
} from "./support/comparePending.ts";

const RATE = 30;
const WHOLE_SECONDS = 240;
const MIN_SECONDS = 10;
const MAX_SHOWN = 20;
/** Every tenth flashblock is also compared by calls. */
const CALLS_EVERY = 10;
const CALLS = 20;
/** Allowed share of flashblocks that are not compared, because the next one arrived before the node's response. */
const MAX_SKIPPED_SHARE = 0.6;
const ARRIVAL_TIMEOUT_MS = 1_500;

interface Variant {
  readonly name: string;
  readonly devnet: DevnetOptions;
  readonly forks: "isthmus" | "prague";
  /** Delay in milliseconds between the sealing of a block and its arrival. */
  readonly sealedDelayMs?: number;
  /** Delay in milliseconds between the creation of a message and its arrival. */
  readonly feedDelayMs?: number;
  /** Share of messages that the first of two feeds loses. */
  readonly losses?: number;
}

const VARIANTS: readonly Variant[] = [
  { name: "deposits, receipts in the metadata", devnet: { generation: "a" }, forks: "isthmus" },
  { name: "brotli, nothing in the metadata", devnet: { generation: "f", encoding: "brotli" }, forks: "isthmus" },
  { name: "without deposits", devnet: { network: "ethereum", generation: "e" }, forks: "prague" },
  { name: "sealed 500 ms after the next index 0", devnet: { generation: "c" }, forks: "isthmus", sealedDelayMs: 500 },
  { name: "sealed 500 ms before the next index 0", devnet: { generation: "d" }, forks: "isthmus", feedDelayMs: 500 },
  { name: "a second feed, one of them loses 5 %", devnet: { generation: "b" }, forks: "isthmus", losses: 0.05 },
];

interface Tally {
  flashblocks: number;
  compared: number;
  calls: number;
  skipped: number;
  unverified: number;
  readonly differences: string[];
  /** Durations of a batch of mixed reads at pending. */
  readonly readMs: number[];
}

/** Creates a lagging node: its `latest` is that of the devnet `delayMs` ago. It forwards all other requests. */
const createHeldNode = async (devnet: Devnet, delayMs: number): Promise<Front> => {
  let latest = BigInt(String(await devnet.rpc("eth_blockNumber")));
  const timers = new Set<NodeJS.Timeout>();
  devnet.events.on("sealed", ({ number }) => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      latest = number;
    }, delayMs);
    timers.add(timer);
  });
  const hold = (call: { method: string; params?: unknown[] }) => {
    const params = call.params?.map((param) => (param === "latest" ? `0x${latest.toString(16)}` : param));
    return { ...call, ...(params && { params }) };
  };
  const forward = async (body: string): Promise<FrontResponse> => {
    const calls: unknown = JSON.parse(body);
    const held = Array.isArray(calls) ? calls.map(hold) : hold(calls as { method: string });
    return forwardTo(devnet.url, JSON.stringify(held));
  };
  const front = await startFront(forward);
  return {
    ...front,
    close: () => {
      for (const timer of timers) {
        clearTimeout(timer);
      }
      return front.close();
    },
  };
};

/** Reads at pending when forebay has this message; undefined if it never has it. */
const arrived = async (
  ours: Batch,
  watched: Watched,
  calls: readonly (readonly [string, ...unknown[]])[],
  hash: string,
  readMs: number[],
): Promise<PendingValues | undefined> => {
  const endMs = performance.now() + ARRIVAL_TIMEOUT_MS;
  while (performance.now() < endMs) {
    const { outcomes } = await ours([["eth_getBlockByNumber", "pending", false]]);
    if ((outcomes[0]?.result as Record<string, unknown> | undefined)?.hash === hash) {
      const startMs = performance.now();
      const read = await readPending(ours, watched, calls);
      if (calls.length === 0) {
        readMs.push(performance.now() - startMs);
      }
      return read.hash === hash ? read : undefined;
    }
    await sleep(5);
  }
  return undefined;
};

const compare = async (
  ours: Batch,
  node: Batch,
  watched: Watched,
  message: Flashblock,
  tally: Tally,
): Promise<void> => {
  const calls = tally.flashblocks++ % CALLS_EVERY === 0 ? randomCalls(watched.contract, CALLS) : [];
  const [mine, its] = await Promise.all([
    arrived(ours, watched, calls, message.diff.block_hash, tally.readMs),
    readNodePending(node, watched, calls),
  ]);
  // Otherwise the state is the node's current one.
  const isOurs = mine?.mode === "live" || mine?.mode === "degraded";
  if (mine && !isOurs) {
    tally.unverified++;
  }
  // One of the two had the next message before it was read.
  if (!mine || !its || !isOurs || mine.transactions !== its.transactions) {
    tally.skipped++;
    return;
  }
  tally.compared++;
  tally.calls += calls.length;
  for (const difference of differencesOf(mine, its, calls)) {
    if (tally.differences.length < MAX_SHOWN) {
      tally.differences.push(`${mine.values.get("block number")} ${difference}`);
    }
  }
};

/** Creates a feed that sends the devnet's messages with a delay. */
const delayMessages = async (devnet: Devnet, delayMs: number): Promise<FeedServer> => {
  const late = await createFeedServer("text");
  devnet.events.on("message", (message) => setTimeout(() => late.send(message), delayMs));
  return late;
};

/** Creates a second feed. The devnet's own feed loses messages from now on. */
const loseMessages = async (devnet: Devnet, share: number): Promise<FeedServer> => {
  const second = await createFeedServer("text");
  devnet.events.on("message", (message) => {
    second.send(message);
    if (Math.random() < share) {
      devnet.faults.drop();
    }
  });
  return second;
};

const isDeployed = async (node: Batch, token: string): Promise<boolean> => {
  const { outcomes } = await node([["eth_getCode", token, "latest"]]);
  return String(outcomes[0]?.result).length > 2;
};

type Counter = "pendingMismatches" | "feedMessages" | "pendingDropped" | "pendingAnswers";
const countedBy = async ({ telemetry }: Service, name: Counter, label: string) => {
  const { values } = await telemetry.metrics[name].get();
  return Object.fromEntries(values.map(({ labels, value }) => [new Map(Object.entries(labels)).get(label), value]));
};

const runOn = async (devnet: Devnet, variant: Variant, seconds: number) => {
  const second = variant.losses ? await loseMessages(devnet, variant.losses) : undefined;
  const late = variant.feedDelayMs ? await delayMessages(devnet, variant.feedDelayMs) : undefined;
  const held = variant.sealedDelayMs ? await createHeldNode(devnet, variant.sealedDelayMs) : undefined;
  const feeds = late ? [late.url] : [devnet.feedUrl ?? [], second?.url ?? []].flat();
  const service = await createService({
    nodes: [{ url: held?.url ?? devnet.url }],
    forks: variant.forks,
    quirks: { anvilDepositNonce: true },
    pending: { feeds },
  });
  const [ours, node] = [createBatch(service.url), createBatch(devnet.anvilUrl)];
  const tally: Tally = {
    flashblocks: 0,
    compared: 0,
    calls: 0,
    skipped: 0,
    unverified: 0,
    differences: [],
    readMs: [],
  };
  const traffic = await startTraffic({ url: devnet.url, chainId: devnet.chainId, rate: RATE });
  const comparing = new Set<Promise<void>>();
  try {
    while (!(await isDeployed(node, traffic.token))) {
      await once(devnet.events, "sealed");
    }
    const watched = watchTraffic(traffic.token);
    const start = (message: Flashblock) => {
      const running = compare(ours, node, watched, message, tally).catch((error: unknown) => {
        tally.differences.push(String(error));
      });
      comparing.add(running);
      void running.finally(() => comparing.delete(running));
    };
    devnet.events.on("message", start);
    await sleep(seconds * 1_000);
    devnet.events.off("message", start);
    await Promise.all(comparing);
    const { readMs, ...counted } = tally;
    return {
      ...counted,
      readP99Ms: quantile(readMs, 0.99),
      readMedianMs: quantile(readMs, 0.5),
      sent: traffic.sent,
      refused: traffic.errors.length,
      answers: await countedBy(service, "pendingAnswers", "mode"),
      mismatches: await countedBy(service, "pendingMismatches", "what"),
      messages: await countedBy(service, "feedMessages", "decision"),
      dropped: await countedBy(service, "pendingDropped", "chain"),
      failures: devnet.failures.map(String),
    };
  } finally {
    await traffic.stop();
    await service.close();
    await Promise.all([second?.close(), late?.close(), held?.close()]);
  }
};

const quantile = (values: readonly number[], share: number): number =>
  Math.round(values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? 0);

const only = process.env.VARIANT;

/** Compares `pending` of forebay at every flashblock with that of the node that builds the block. */
export const long = async ({ seconds }: { readonly seconds: number | undefined }) => {
  const chosen = VARIANTS.filter(({ name }) => only === undefined || name.includes(only));
  const each = Math.max((seconds ?? WHOLE_SECONDS) / chosen.length, MIN_SECONDS);
  const variants: Record<string, unknown> = {};
  let passed = true;
  for (const variant of chosen) {
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
