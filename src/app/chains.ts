import { setTimeout as wait } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { ConfigError } from "../config/readConfig.ts";
import type { ChainConfig } from "../config/schema.ts";
import type { Endpoint } from "../http/endpoint.ts";
import { trackInFlight } from "../http/trackInFlight.ts";
import { removeMetricSeries } from "../telemetry/removeMetricSeries.ts";
import { createChainRuntime, type ServedChain, type Shared } from "./chainRuntime.ts";

export interface ChainsOptions {
  readonly configs: readonly ChainConfig[];
  readonly shared: Omit<Shared, "onWrongChain">;
  /** How long a replaced chain's requests may take to end. */
  readonly drainTimeoutMs: number;
  /** Told what is served from now on. */
  onRoutes(routes: ReadonlyMap<string, Endpoint>): void;
}

/** All chains of the process. */
export interface Chains {
  readonly current: readonly ServedChain[];
  readonly routes: ReadonlyMap<string, Endpoint>;
  /** It has its genesis and a first head. */
  isKnown(chain: ServedChain): boolean;
  /** All of them are known. */
  readonly ready: Promise<void>;
  /**
   * Serves these instead. What has changed is built beside what is served, and takes its place when its nodes have told a
   * head; requests under way end where they began. Rejects with ConfigError, and changes nothing, where one does not.
   */
  replace(configs: readonly ChainConfig[]): Promise<void>;
  close(): Promise<void>;
}

/** Nodes that are asked in vain need five seconds each to be found out. */
const READY_TIMEOUT_MS = 30_000;

interface ActiveChain {
  readonly config: ChainConfig;
  readonly chain: ServedChain;
  readonly endpoint: Endpoint;
  idle(): Promise<void>;
  /** Rejects once one of its nodes is of another chain. */
  readonly wrongChain: Promise<never>;
  isKnown: boolean;
  /** Another chain before it has the same chain id: said once. */
  hasSharedId: boolean;
}

const message = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export const createChains = (options: ChainsOptions): Chains => {
  const { shared } = options;
  const { registry, log } = shared.telemetry;
  const ready = Promise.withResolvers<void>();
  const retiring = new Set<Promise<void>>();
  let isClosed = false;

  const start = (config: ChainConfig): ActiveChain => {
    const wrongChain = Promise.withResolvers<never>();
    wrongChain.promise.catch(() => {});
    const chain = createChainRuntime(config, { ...shared, onWrongChain: wrongChain.reject });
    const live: ActiveChain = {
      config,
      chain,
      ...trackInFlight(chain.endpoint),
      wrongChain: wrongChain.promise,
      isKnown: false,
      hasSharedId: false,
    };
    chain.ready.then(
      () => {
        live.isKnown = true;
        if (current.includes(live)) publish();
      },
      () => {},
    );
    return live;
  };

  let routes: ReadonlyMap<string, Endpoint> = new Map();
  const publish = (): void => {
    const next = new Map<string, Endpoint>();
    for (const { config, endpoint } of current) {
      if (current.length === 1) next.set("/", endpoint);
      next.set(`/${config.name}`, endpoint);
    }
    for (const live of current) {
      const { config, chain, endpoint } = live;
      const chainId = live.isKnown ? chain.upstreams.genesis.chainId : config.chainId;
      const path = `/${chainId}`;
      if (chainId === undefined || next.get(path) === endpoint) continue;
      if (!next.has(path)) next.set(path, endpoint);
      else if (live.isKnown && !live.hasSharedId) {
        live.hasSharedId = true;
        log.warn(
          { chain: config.name, path },
          "the path of this chain id is another chain's: served under its name alone",
        );
      }
    }
    routes = next;
    options.onRoutes(next);
    if (current.every(({ isKnown }) => isKnown)) ready.resolve();
  };

  /** A new configuration with a node of another chain is refused; one in force has it suspended. */
  const untilReady = async ({ chain, wrongChain }: ActiveChain, path: string): Promise<void> => {
    const late = new AbortController();
    const timeout = wait(READY_TIMEOUT_MS, undefined, { signal: late.signal }).then(() => {
      throw new Error(`no node of it answered within ${READY_TIMEOUT_MS / 1000} s`);
    });
    try {
      await Promise.race([chain.ready, wrongChain, timeout]);
    } catch (error) {
      throw new ConfigError([`${path}: ${message(error)}`]);
    } finally {
      timeout.catch(() => {});
      late.abort();
    }
  };

  /** Its series go with it, but those that its successor sets too. */
  const forget = async ({ config }: ActiveChain): Promise<void> => {
    const successor = current.find(({ chain }) => chain.name === config.name);
    if (successor === undefined) return removeMetricSeries(registry, config.name);
    const names = new Set(successor.chain.upstreams.nodes.map(({ name }) => name));
    for (const [index, { name = `node${index + 1}` }] of config.nodes.entries()) {
      if (!names.has(name)) await removeMetricSeries(registry, config.name, name);
    }
  };

  const retire = async (live: ActiveChain): Promise<void> => {
    const ended = new AbortController();
    const late = wait(options.drainTimeoutMs, undefined, { signal: ended.signal }).catch(() => {});
    await Promise.race([live.idle(), late]);
    ended.abort();
    await live.chain.close();
    await forget(live);
  };

  let current: readonly ActiveChain[] = [];
  current = options.configs.map(start);
  publish();

  return {
    get current() {
      return current.map(({ chain }) => chain);
    },
    get routes() {
      return routes;
    },
    isKnown: (chain) => current.some((live) => live.chain === chain && live.isKnown),
    ready: ready.promise,
    replace: async (configs) => {
      const before = current;
      const next = configs.map(
        (config) => before.find((live) => isDeepStrictEqual(live.config, config)) ?? start(config),
      );
      const bypassCache = next.filter((live) => !before.includes(live));
      const discard = async (): Promise<void> => {
        await Promise.all(bypassCache.map(({ chain }) => chain.close()));
        for (const live of bypassCache) await forget(live);
      };
      try {
        await Promise.all(bypassCache.map((live) => untilReady(live, `chains[${next.indexOf(live)}]`)));
      } catch (error) {
        await discard();
        throw error;
      }
      if (isClosed) return discard();
      current = next;
      publish();
      for (const live of before.filter((each) => !next.includes(each))) {
        const retired = retire(live).finally(() => retiring.delete(retired));
        retiring.add(retired);
      }
    },
    close: async () => {
      isClosed = true;
      await Promise.all(current.map(({ chain }) => chain.close()));
      await Promise.all(retiring);
    },
  };
};
