import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { formatData, type Hash } from "../../../src/ethereum/hex.ts";
import { BEACON_ROOTS, BLOCK_HASHES } from "../../../src/evm/systemCalls.ts";
import { createDevnet, type Devnet } from "../../devnet/devnet.ts";
import { L1_BLOCK } from "../../devnet/l1Attributes.ts";
import { startTraffic, type Traffic } from "../../devnet/traffic.ts";
import { createRandom } from "../../support/builders/randomValues.ts";
import { createService } from "../../support/servers/service.ts";
import { NodeStateComparison } from "./compareNodeState.ts";
import { createBatch, watchTraffic } from "./comparePending.ts";
import { collectedHeapMiB } from "./memory.ts";
import { countedBy, stateCounts } from "./stateCounts.ts";

export interface DevnetVariant {
  readonly source: "feed" | "trace";
  readonly seconds: number;
  /** Ends after this number of blocks instead. */
  readonly steps: number | undefined;
  readonly seed: number;
}

const BLOCK_MS = 1_000;
/** Half of a second, for the two halves of a run. */
const HALF_MS = 500;
const CHECK_MS = 10;
const RATE = 30;
const CLIENTS = 4;
const SYSTEM_SLOTS = 40;
const L1_SLOTS = 12;
/** The mean time between two reorganisations. */
const REORG_MS = 6_000;
const MAX_REORG = 64;
const SMALL_REORG = 3;
const DEEP_SHARE = 0.15;
/** The chance of each message but the first that the feed loses it and the others of its block. */
const LOSS_SHARE = 0.1;

const slotOf = (slot: number): Hash => formatData(Uint8Array.fromHex(slot.toString(16).padStart(64, "0")));
const firstSlots = (count: number): readonly Hash[] => Array.from({ length: count }, (_, slot) => slotOf(slot));

/** Replaces blocks until the signal aborts. */
const reorganise = async (devnet: Devnet, traffic: Traffic, random: () => number, signal: AbortSignal) => {
  let reorganisations = 0;
  let replacedBlocks = 0;
  while (!signal.aborted) {
    await sleep(random() * 2 * REORG_MS, undefined, { signal }).catch(() => undefined);
    const height = Number(await devnet.rpc("eth_blockNumber"));
    const depth = 1 + Math.floor(random() * (random() < DEEP_SHARE ? MAX_REORG : SMALL_REORG));
    if (!signal.aborted && depth < height) {
      await devnet.reorg(depth);
      traffic.resetNonces();
      reorganisations++;
      replacedBlocks += depth;
    }
  }
  return { reorganisations, replacedBlocks };
};

/** Lets the feed lose the last messages of some blocks. Returns the payloads of these blocks. */
const loseLastMessages = ({ faults }: Devnet, random: () => number): ReadonlySet<string> => {
  const lossy = new Set<string>();
  faults.lose(({ payload_id, index }) => {
    if (index > 0 && random() < LOSS_SHARE) {
      lossy.add(payload_id);
    }
    return lossy.has(payload_id);
  });
  return lossy;
};

const isDeployed = async (devnet: Devnet, token: string): Promise<boolean> =>
  String(await devnet.rpc("eth_getCode", token, "latest")).length > 2;

/** Waits for a number of blocks, and for reads that are compared after each. */
const untilSealed = async (devnet: Devnet, { tally }: NodeStateComparison, blocks: number): Promise<void> => {
  for (let block = 0; block < blocks; block++) {
    await once(devnet.events, "sealed");
    const { comparisons } = tally;
    while (tally.comparisons === comparisons) {
      await sleep(CHECK_MS);
    }
  }
};

const run = async (devnet: Devnet, { source, seconds, steps, seed }: DevnetVariant) => {
  const service = await createService({
    nodes: [{ url: devnet.url, wsUrl: devnet.anvilWsUrl }],
    forks: "isthmus",
    quirks: { anvilDepositNonce: true },
    ...(source === "feed" && { pending: { feeds: [devnet.feedUrl ?? ""] } }),
    state: { follow: "plain", source },
  });
  const traffic = await startTraffic({ url: devnet.url, chainId: devnet.chainId, rate: RATE });
  const random = createRandom(seed);
  const ending = new AbortController();
  try {
    while (!(await isDeployed(devnet, traffic.token))) {
      await once(devnet.events, "sealed");
    }
    const compared = new NodeStateComparison({
      ...{ ours: createBatch(service.url), node: createBatch(devnet.anvilUrl), random },
      watched: watchTraffic(traffic.token),
      slots: new Map([
        [L1_BLOCK, firstSlots(L1_SLOTS)],
        [BEACON_ROOTS, firstSlots(SYSTEM_SLOTS)],
        [BLOCK_HASHES, firstSlots(SYSTEM_SLOTS)],
      ]),
    });
    const lossy = loseLastMessages(devnet, createRandom(seed + 1));
    const reorganising = reorganise(devnet, traffic, random, ending.signal);
    const clients = Array.from({ length: CLIENTS }, () => compared.run(ending.signal));
    const half = () => (steps === undefined ? sleep(seconds * HALF_MS) : untilSealed(devnet, compared, steps / 2));
    await half();
    const middleMiB = collectedHeapMiB();
    await half();
    ending.abort();
    const [replaced] = await Promise.all([reorganising, ...clients]);
    const { hit = 0, miss = 0 } = await countedBy(service, "stateLookups", "outcome");
    return {
      ...compared.tally,
      blocks: Number(await devnet.rpc("eth_blockNumber")),
      ...replaced,
      lossyBlocks: lossy.size,
      // This process has the service, the sequencer and the clients.
      heapMiB: { middle: middleMiB, end: collectedHeapMiB() },
      ...(await stateCounts(service)),
      localShare: Number((hit / Math.max(1, hit + miss)).toFixed(3)),
      failures: devnet.failures.map(String),
    };
  } finally {
    ending.abort();
    await traffic.stop();
    await service.close();
  }
};

/** Compares reads with anvil at the same hash, on a devnet with deposits, fee vaults and reorganisations. */
export const runDevnetVariant = async (variant: DevnetVariant) => {
  const devnet = await createDevnet({ generation: "e", blockTimeMs: BLOCK_MS, feed: variant.source === "feed" });
  try {
    return await run(devnet, variant);
  } finally {
    await devnet.close();
  }
};
