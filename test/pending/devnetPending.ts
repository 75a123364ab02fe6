import type { BlockId, HeadChange, HeaderFields, Heads, RingBlock } from "../../src/core/heads.ts";
import { isHash, isQuantity, parseData } from "../../src/ethereum/hex.ts";
import type { ChainForks } from "../../src/ethereum/rules.ts";
import { createFeed } from "../../src/feed/feedClient.ts";
import { ExecutorClient } from "../../src/pending/executorClient.ts";
import { Pending } from "../../src/pending/pending.ts";
import type { PendingOptions } from "../../src/pending/pendingParts.ts";
import { createTelemetry, type Telemetry } from "../../src/telemetry/telemetry.ts";
import type { Devnet } from "../devnet/devnet.ts";
import { until } from "../support/clients/until.ts";
import { type Ask, createAsk, nodeState } from "../support/fakes/nodeState.ts";
import { createWorkers } from "../support/servers/evmWorkers.ts";

const ringBlock = (header: HeaderFields): RingBlock => {
  const { number, hash, parentHash, timestamp, logsBloom } = header;
  if (!isQuantity(number) || !isHash(hash) || !isHash(parentHash) || !isQuantity(timestamp) || !isQuantity(logsBloom)) {
    throw new Error("not a block");
  }
  return { number: BigInt(number), hash, parentHash, timestamp: BigInt(timestamp), logsBloom: parseData(logsBloom) };
};

/** Creates heads that read the node only when the test requests it. */
export const createNodeHeads = async (ask: Ask, blockTimeMs: number) => {
  const listeners = new Set<(change: HeadChange) => void>();
  let ring: readonly { readonly block: RingBlock; readonly header: HeaderFields }[] = [];
  const read = async (block: string) => {
    const header = (await ask("eth_getBlockByNumber", [block, false])) as HeaderFields;
    return { block: ringBlock(header), header };
  };
  const toHeads = (): Heads => {
    const entries = ring;
    const latest = entries.at(-1)?.block;
    if (!latest) {
      throw new Error("no block");
    }
    const at = (number: bigint) => entries.find(({ block }) => block.number === number);
    return {
      latest,
      isAgreed: false,
      safe: undefined,
      finalized: undefined,
      at: (number) => at(number)?.block,
      header: (number) => at(number)?.header,
      oldest: entries[0]?.block.number ?? 0n,
    };
  };
  ring = [await read("latest")];
  let current = toHeads();
  return {
    blockTimeMs,
    current: () => current,
    refresh: () => Promise.resolve(current),
    setNative: () => {},
    subscribe: (listener: (change: HeadChange) => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    /** Reads the node's newest blocks. */
    look: async (): Promise<void> => {
      const to = [await read("latest")];
      const parentOf = (hash: string) => ring.find(({ block }) => block.hash === hash);
      for (
        let first = to[0];
        first && !parentOf(first.block.parentHash) && first.block.number > (ring[0]?.block.number ?? 0n);
        first = to[0]
      ) {
        to.unshift(await read(`0x${(first.block.number - 1n).toString(16)}`));
      }
      const bypassCache = to.filter(({ block }) => !parentOf(block.hash));
      const [lowest] = bypassCache;
      if (!lowest) {
        return;
      }
      const from = ring.filter(({ block }) => block.number >= lowest.block.number).map(({ block }) => block);
      ring = [...ring.filter(({ block }) => block.number < lowest.block.number), ...bypassCache].slice(-256);
      current = toHeads();
      for (const listener of listeners) {
        listener({ heads: current, from, to: bypassCache.map(({ block }) => block) });
      }
    },
  };
};

export interface DevnetPendingOptions extends Partial<Omit<PendingOptions, "forks">> {
  readonly forks: ChainForks;
  readonly blockTimeMs?: number;
  readonly feedUrls?: readonly string[];
  /** Awaited before each read of state. */
  readonly beforeRead?: (base: BlockId) => Promise<void>;
}

/** Creates pending views on a devnet: its feed, its node, and a separate executor. */
export const createDevnetPending = async (
  devnet: Devnet,
  options: DevnetPendingOptions,
): Promise<{
  pending: Pending;
  heads: Awaited<ReturnType<typeof createNodeHeads>>;
  telemetry: Telemetry;
  failures: Error[];
  reads: () => number;
}> => {
  const ask = createAsk(devnet.anvilUrl);
  const heads = await createNodeHeads(ask, options.blockTimeMs ?? 2_000);
  const telemetry = createTelemetry({ level: "silent" });
  const failures: Error[] = [];
  let reads = 0;
  const urls = options.feedUrls ?? (devnet.feedUrl ? [devnet.feedUrl] : []);
  const executor = new ExecutorClient({
    workers: createWorkers({ onFailure: (error) => failures.push(error) }),
    forks: () => options.forks,
    nativeContracts: [],
    stateAt: (base) => {
      const source = nodeState(ask, base);
      const read: typeof source.read = async (...request) => {
        reads++;
        await options.beforeRead?.(base);
        return source.read(...request);
      };
      return { ...source, read };
    },
  });
  const pending = new Pending({
    chain: "devnet",
    mode: "auto",
    maxDepth: 5,
    skipsReceiptsRoot: true,
    heads,
    ...(urls.length === 0
      ? {}
      : {
          openFeed: (onMessage, blockTimeMs) =>
            createFeed({ chain: "devnet", urls, maxMessageBytes: 1_000_000, blockTimeMs, onMessage, telemetry }),
        }),
    read: ask,
    telemetry,
    ...options,
    forks: () => options.forks,
  });
  pending.begin(executor);
  const connections = async () => (await telemetry.metrics.feedConnected.get()).values[0]?.value ?? 0;
  await until(async () => (await connections()) === urls.length, "feeds connected");
  return { pending, heads, telemetry, failures, reads: () => reads };
};
