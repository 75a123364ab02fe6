import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { median, quantile } from "../bench/support/result.ts";
import { createDevnet, type Devnet, type DevnetOptions } from "../devnet/devnet.ts";
import { createFeedServer, type FeedServer } from "../devnet/feedServer.ts";
import type { Flashblock } from "../devnet/flashblock.ts";
import { startTraffic } from "../devnet/traffic.ts";
import { createRandom } from "../support/builders/randomValues.ts";
import { type Front, type FrontResponse, forwardTo, startFront } from "../support/fakes/front.ts";
import { createService } from "../support/servers/service.ts";
import {
  type Batch,
  createBatch,
  differencesOf,
  hasFailed,
  type PendingCall,
  type PendingValues,
  randomCalls,
  readNodePending,
  readPending,
  type Watched,
  watchTraffic,
} from "./support/comparePending.ts";
import type { LongOptions } from "./support/longOptions.ts";
import { countedBy } from "./support/stateCounts.ts";

/** `VARIANT=text` selects variants by a part of their name, `SEED=n` other calls. */
const only = process.env.VARIANT;
const seed = Number(process.env.SEED ?? 1);
const RATE = 30;
const WHOLE_SECONDS = 240;
const MIN_SECONDS = 10;
const MAX_SHOWN = 20;
/** Every fifth flashblock is also compared by calls: few enough for forebay's queue, if two batches overlap. */
const CALLS_EVERY = 5;
const CALLS = 10;
/** Allowed share of flashblocks that forebay does not show, or not with verified state. */
const MAX_UNVERIFIED_SHARE = 0.6;
/** On a machine with other work, a variant continues until so many flashblocks are compared, and some calls. */
const MIN_COMPARED = 10;
const MAX_EXTRA_MS = 120_000;
/** Enough for a machine with other work. Without a delay, the next message waits for the comparison of the last one. */
const ARRIVAL_TIMEOUT_MS = 10_000;
const FLASHBLOCK_MS = 200;

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
  /** Flashblocks that were not compared, because the next one was there before both were read. */
  skipped: number;
  /** Flashblocks that forebay did not show in time, or not with verified state. */
  unverified: number;
  /** Reads without a value, such as calls that forebay refused because too many simulations ran. The batch is sent again. */
  failed: number;
  /** What comparisons threw. */
  readonly errors: string[];
  readonly differences: string[];
  /** Durations of a batch of mixed reads at pending. */
  readonly readMs: number[];
}

/** The messages so far, and what their comparison counted. */
interface Compared {
  readonly tally: Tally;
  /** The place of each message in the order of the feed, by the hash of its block. */
  readonly places: Map<string, number>;
  readonly random: () => number;
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

type Arrived = PendingValues | "overtaken" | "unverified";

/** Reads at pending when forebay shows this message, unless it shows a later one before. */
const arrived = async (
  ours: Batch,
  watched: Watched,
  calls: readonly PendingCall[],
  hash: string,
  { tally, places }: Compared,
): Promise<Arrived> => {
  const endMs = performance.now() + ARRIVAL_TIMEOUT_MS;
  while (performance.now() < endMs) {
    const { outcomes } = await ours([["eth_getBlockByNumber", "pending", false]]);
    const shown = String((outcomes[0]?.result as Record<string, unknown> | undefined)?.hash);
    if (shown === hash) {
      const startMs = performance.now();
      const read = await readPending(ours, watched, calls);
      if (calls.length === 0) {
        tally.readMs.push(performance.now() - startMs);
      }
      const failed = read.failed + read.calls.filter(hasFailed).length;
      tally.failed += failed;
      if (read.hash !== hash) {
        return "overtaken";
      }
      if (failed === 0) {
        // Without these modes the state is the node's current one.
        return read.mode === "live" || read.mode === "degraded" ? read : "unverified";
      }
    } else if ((places.get(shown) ?? 0) > (places.get(hash) ?? 0)) {
      return "overtaken";
    }
    await sleep(5);
  }
  return "unverified";
};

const compare = async (
  ours: Batch,
  node: Batch,
  watched: Watched,
  message: Flashblock,
  compared: Compared,
): Promise<void> => {
  const { tally, places, random } = compared;
  places.set(message.diff.block_hash, places.size);
  const calls = tally.flashblocks++ % CALLS_EVERY === 0 ? randomCalls(watched.contract, CALLS, random) : [];
  const [mine, its] = await Promise.all([
    arrived(ours, watched, calls, message.diff.block_hash, compared),
    readNodePending(node, watched, calls),
  ]);
  if (mine === "unverified") {
    tally.unverified++;
    return;
  }
  if (mine === "overtaken" || !its || mine.transactions !== its.transactions) {
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
  const random = createRandom(seed);
  devnet.events.on("message", (message) => {
    second.send(message);
    if (random() < share) {
      devnet.faults.drop();
    }
  });
  return second;
};

const isDeployed = async (node: Batch, token: string): Promise<boolean> => {
  const { outcomes } = await node([["eth_getCode", token, "latest"]]);
  return String(outcomes[0]?.result).length > 2;
};

/** Comparisons that run. A devnet of the variant waits for them, with as many at once as a delay needs. */
const createComparisons = ({ sealedDelayMs = 0, feedDelayMs = 0 }: Variant) => {
  const most = 1 + Math.ceil(Math.max(sealedDelayMs, feedDelayMs) / FLASHBLOCK_MS);
  const running = new Set<Promise<void>>();
  return {
    add: (comparison: Promise<void>) => {
      running.add(comparison);
      void comparison.finally(() => running.delete(comparison));
    },
    ready: async () => {
      while (running.size >= most) {
        await Promise.race(running);
      }
    },
    ended: () => Promise.all(running),
  };
};

const runOn = async (
  devnet: Devnet,
  comparisons: ReturnType<typeof createComparisons>,
  variant: Variant,
  { seconds, steps }: { readonly seconds: number; readonly steps: number | undefined },
) => {
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
    failed: 0,
    errors: [],
    differences: [],
    readMs: [],
  };
  const traffic = await startTraffic({ url: devnet.url, chainId: devnet.chainId, rate: RATE });
  const compared: Compared = { tally, places: new Map(), random: createRandom(seed) };
  try {
    while (!(await isDeployed(node, traffic.token))) {
      await once(devnet.events, "sealed");
    }
    const watched = watchTraffic(traffic.token);
    const start = (message: Flashblock) => {
      const comparison = compare(ours, node, watched, message, compared);
      comparisons.add(comparison.catch((error: unknown) => void tally.errors.push(String(error))));
    };
    devnet.events.on("message", start);
    await (steps === undefined ? sleep(seconds * 1_000) : undefined);
    const endMs = performance.now() + MAX_EXTRA_MS;
    while (!isEnough(tally, steps) && (steps !== undefined || performance.now() < endMs)) {
      await sleep(FLASHBLOCK_MS);
    }
    devnet.events.off("message", start);
    await comparisons.ended();
    const { readMs, ...counted } = tally;
    return {
      ...counted,
      readP99Ms: Math.round(quantile(readMs, 0.99)),
      readMedianMs: Math.round(median(readMs)),
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

const isEnough = ({ compared, calls }: Pick<Tally, "compared" | "calls">, steps = MIN_COMPARED): boolean =>
  compared >= steps && calls > 0;

export const takesSteps = true;

/** Compares `pending` of forebay at every flashblock with that of the node that builds the block. A step is a compared flashblock. */
export const long = async ({ seconds, steps }: LongOptions) => {
  const chosen = VARIANTS.filter(({ name }) => only === undefined || name.includes(only));
  const each = Math.max((seconds ?? WHOLE_SECONDS) / chosen.length, MIN_SECONDS);
  const variants: Record<string, unknown> = {};
  let passed = true;
  for (const variant of chosen) {
    const comparisons = createComparisons(variant);
    const devnet = await createDevnet({ ...variant.devnet, flashblockMs: FLASHBLOCK_MS, ready: comparisons.ready });
    try {
      const result = await runOn(devnet, comparisons, variant, { seconds: each, steps });
      console.log(variant.name, JSON.stringify(result));
      variants[variant.name] = result;
      const { differences, errors, failures, unverified, flashblocks } = result;
      const isWhole =
        errors.length + failures.length === 0 && unverified <= flashblocks * MAX_UNVERIFIED_SHARE && isEnough(result);
      passed &&= differences.length === 0 && (isWhole || steps !== undefined);
    } finally {
      await devnet.close();
    }
  }
  return { passed, variants };
};
