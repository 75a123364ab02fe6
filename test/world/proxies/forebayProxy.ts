import { readFileSync } from "node:fs";
import { startRedis } from "../../support/servers/redis.ts";
import { BLOCK_MS } from "../chain/blockTime.ts";
import { ForebayReplicas } from "./forebayReplicas.ts";
import type { ProxySetup, RunningProxy, TestedProxy } from "./proxy.ts";

const { version }: { version: string } = JSON.parse(
  readFileSync(new URL("../../../package.json", import.meta.url), "utf8"),
);

/** The deadline of the replicas: on a slow machine, only a paused Redis misses it. */
export const REDIS_TIMEOUT_MS = 500;
/** Small caches are full long before heaps are compared. */
const CACHE_BYTES = 4 * 1024 * 1024;
/** Executions cache the values of four such requests at least. */
const MAX_STATE_READS = 200;

const SMALL_CHAIN = { state: { cacheBytes: CACHE_BYTES }, simulate: { maxStateReads: MAX_STATE_READS } };

/** The options of docs/operate.md: a Redis for several replicas, and the rest by default. */
const configure = (
  { chainId, nodeUrls, feedUrls, other }: ProxySetup,
  redisUrl: string | undefined,
  hasSmallCaches: boolean,
): object => {
  // The chains are private ones: their block time and their rules are not known by their ids.
  const common = { blockTimeMs: BLOCK_MS, forks: "prague", ...(hasSmallCaches && SMALL_CHAIN) };
  const cache = {
    ...(redisUrl !== undefined && { redis: redisUrl, redisTimeoutMs: REDIS_TIMEOUT_MS }),
    ...(hasSmallCaches && { memoryBytes: CACHE_BYTES }),
  };
  const main = {
    ...{ name: "main", chainId, nodes: nodeUrls.map((url) => ({ url })), ...common },
    reads: { agree: 2 },
    ...(feedUrls.length > 0 && { pending: { feeds: feedUrls } }),
  };
  return {
    chains: other
      ? [main, { name: "other", chainId: other.chainId, nodes: [{ url: other.nodeUrl }], ...common }]
      : [main],
    ...(Object.keys(cache).length > 0 && { cache }),
  };
};

export interface ForebayOptions {
  /** Name of a planted fault. */
  readonly planted?: string | undefined;
  readonly hasSmallCaches?: boolean;
}

export interface RunningForebay extends RunningProxy {
  readonly replicas: ForebayReplicas;
}

export interface ForebayProxy extends TestedProxy {
  start(...args: Parameters<TestedProxy["start"]>): Promise<RunningForebay>;
}

/** Forebay of this tree, as processes of their own. */
export const createForebayProxy = ({ planted, hasSmallCaches = false }: ForebayOptions = {}): ForebayProxy => ({
  name: planted === undefined ? "forebay" : `forebay with the fault ${planted}`,
  version,
  offers: new Set(["restart", "replicas", "feed", "clock", "redis"]),
  start: async (t, setup): Promise<RunningForebay> => {
    const redis = setup.replicas > 1 ? await startRedis(t) : undefined;
    const replicas = await ForebayReplicas.start(t, {
      ...{ count: setup.replicas, planted, onUnexpectedEnd: setup.onUnexpectedEnd },
      configOf: (index) => {
        // Replicas prefer different nodes. The first one prefers that with the fault of a scenario.
        const [first = "", ...others] = setup.nodeUrls;
        const nodeUrls =
          index % 2 === 0 ? [...others.slice(0, 1), first, ...others.slice(1)] : setup.nodeUrls.toReversed();
        return configure({ ...setup, nodeUrls }, redis?.url, hasSmallCaches);
      },
    });
    return {
      replicas,
      instances: (isOther) => replicas.instances(isOther ? "other" : "main"),
      restart: async (index) => {
        await replicas.kill(index);
        await replicas.launch(index);
      },
      jumpClock: (index) => replicas.signal(index, "SIGUSR2"),
      pauseRedis: (isPaused) => redis?.signal(isPaused ? "SIGSTOP" : "SIGCONT"),
    };
  },
  template: (setup) =>
    JSON.stringify(configure(setup, setup.replicas > 1 ? "redis://HOST:6379" : undefined, hasSmallCaches), null, 2),
});
