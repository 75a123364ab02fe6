import { DiskStore } from "../cache/diskStore.ts";
import { MemoryStore } from "../cache/memoryStore.ts";
import { RedisStore } from "../cache/redisStore.ts";
import { RedisUsage } from "../cache/redisUsage.ts";
import type { Config } from "../config/schema.ts";
import type { Node } from "../core/node.ts";
import type { UsageStore } from "../core/usageStore.ts";
import { FairGate } from "../limits/fairGate.ts";
import type { MemoryBudget } from "../limits/memoryBudget.ts";
import { ProvenBlocks } from "../methods/provenBlocks.ts";
import { EvmThreads } from "../runs/evmThreads.ts";
import { WriteSetThread } from "../state/sources/writeSetThread.ts";
import { DataStorage } from "../storage/dataStorage.ts";
import { Deliveries } from "../subscriptions/deliveries.ts";
import { MemoryUsage } from "../telemetry/memoryUsage.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { UsageLedger } from "../telemetry/usageLedger.ts";
import { VerifyThreads } from "../verification/verifyThreads.ts";
import { WebSockets } from "../websocket/webSocketServer.ts";
import { createMemoryBudget } from "./createMemoryBudget.ts";
import { workerEntry } from "./workerEntry.ts";

/** The parts that all chains of the process share. */
export interface Shared {
  readonly memory: MemoryStore;
  /** The bytes that requests may hold beside the caches. */
  readonly budget: MemoryBudget;
  readonly redis: RedisStore | undefined;
  /** The data folder. Undefined if nothing is stored there. */
  readonly storage: DataStorage | undefined;
  /** Undefined if no entries are stored in the data folder. */
  readonly disk: DiskStore | undefined;
  /** See `cache.disk`. */
  readonly diskMode: Config["cache"]["disk"];
  readonly logSlots: FairGate<Node>;
  readonly webSockets: WebSockets;
  readonly deliveries: Deliveries;
  /** Threads that execute EVM code. */
  readonly evmThreads: EvmThreads;
  /** Threads that verify responses. */
  readonly verifyPool: VerifyThreads;
  /** Formats proven parts of blocks. */
  readonly provenBlocks: ProvenBlocks;
  /** Turns responses of nodes into write sets. */
  readonly writeSetThread: WriteSetThread;
  /** Counts the calls of clients without a key, and the calls to nodes. */
  readonly usages: UsageLedger;
  readonly telemetry: Telemetry;
  readonly server: Config["server"];
  readonly usage: Config["usage"];
  readonly bypassHeader: string | undefined;
}

/** Returns the limit of a response in bytes. */
export const maxResponseBytesOf = ({ maxResponseBytes }: Config["server"]): number =>
  maxResponseBytes === "none" ? Number.POSITIVE_INFINITY : maxResponseBytes;

const createRedis = ({ redis: url, redisTimeoutMs: timeoutMs }: Config["cache"], telemetry: Telemetry) =>
  url === undefined ? undefined : new RedisStore({ url, timeoutMs, telemetry });

/** Returns where the usage of days is kept: in Redis, or else in the data folder, or else in memory. */
export const usageStoreOf = ({ redis, storage, usage }: Pick<Shared, "redis" | "storage" | "usage">): UsageStore =>
  redis === undefined ? (storage?.usage ?? new MemoryUsage(usage.topKeys)) : new RedisUsage(redis.run);

/** Whether entries are stored in the data folder. */
const storesEntries = ({ server: { dataDir }, cache: { disk, redis } }: Config): boolean =>
  dataDir !== undefined && (disk === "always" || (disk === "auto" && redis === undefined));

/** Whether the data folder holds entries, known state or usage. */
const usesFolder = (config: Config): boolean =>
  storesEntries(config) ||
  config.cache.redis === undefined ||
  config.chains.some(({ state: { follow, cacheBytes } }) => follow !== false && cacheBytes > 0);

/** Opens the data folder, if something is stored there. */
export const openStorage = (config: Config, telemetry: Telemetry): DataStorage | undefined => {
  const { dataDir } = config.server;
  return dataDir !== undefined && usesFolder(config)
    ? new DataStorage({
        ...{ folder: dataDir, maxBytes: config.cache.diskBytes },
        ...{ entry: workerEntry("storage"), telemetry },
      })
    : undefined;
};

/** Creates the parts that all chains share. */
export const createShared = (
  config: Config,
  telemetry: Telemetry,
  usages: UsageLedger,
  storage: DataStorage | undefined,
): Shared => {
  const { server, cache, usage } = config;
  const { log, metrics } = telemetry;
  const budget = createMemoryBudget(config, telemetry);
  const redis = createRedis(cache, telemetry);
  const disk = storage && storesEntries(config) ? new DiskStore(storage, cache.diskBytes, telemetry) : undefined;
  const memory = new MemoryStore(cache.memoryBytes, telemetry);
  return {
    memory,
    budget,
    redis,
    storage,
    disk,
    diskMode: cache.disk,
    logSlots: new FairGate<Node>({ max: server.logSpans }),
    webSockets: new WebSockets({
      ...server,
      memory: budget,
      telemetry,
    }),
    deliveries: new Deliveries(log),
    evmThreads: new EvmThreads({
      entry: workerEntry("evm"),
      onFailure: (error) => log.error({ err: error }, "a worker failed"),
      onThreads: (threads) => metrics.workers.set(threads),
    }),
    verifyPool: new VerifyThreads(workerEntry("verification")),
    provenBlocks: new ProvenBlocks({
      entry: workerEntry("proven"),
      store: memory,
      onFailure: (error) => log.error({ err: error }, "the thread of proven answers failed"),
    }),
    writeSetThread: new WriteSetThread({
      entry: workerEntry("writeSets"),
      onFailure: (error) => log.error({ err: error }, "a thread of write sets failed"),
    }),
    usages,
    telemetry,
    server,
    usage,
    bypassHeader: cache.bypassHeader?.toLowerCase(),
  };
};
