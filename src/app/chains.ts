import { isDeepStrictEqual } from "node:util";
import type { ChainConfig } from "../config/schema.ts";
import type { Endpoint } from "../http/endpoint.ts";
import { nodeName } from "../nodes/nodeName.ts";
import { removeMetricSeries } from "../telemetry/removeMetricSeries.ts";
import { ActiveChain, type CreateChain } from "./activeChain.ts";
import type { ServedChain } from "./chainRuntime.ts";
import type { Shared } from "./shared.ts";

/** A chain as far as routing concerns it. */
interface RoutedChain {
  readonly config: { readonly name: string };
  /** Undefined until a node has returned it, if it is not configured. */
  readonly chainId: bigint | number | undefined;
  readonly endpoint: Endpoint;
}

interface ChainRoutes<C> {
  readonly routes: ReadonlyMap<string, Endpoint>;
  /** Chains without a path of their chain id, because an earlier chain has the same id. */
  readonly shadowed: readonly { readonly chain: C; readonly path: string }[];
}

/** Returns the paths of all chains: `/<name>`, `/<chainId>`, and `/` if there is only one chain. */
const createChainRoutes = <C extends RoutedChain>(chains: readonly C[]): ChainRoutes<C> => {
  const routes = new Map<string, Endpoint>();
  const shadowed: { chain: C; path: string }[] = [];
  for (const { config, endpoint } of chains) {
    if (chains.length === 1) {
      routes.set("/", endpoint);
    }
    routes.set(`/${config.name}`, endpoint);
  }
  for (const chain of chains) {
    if (chain.chainId === undefined) {
      continue;
    }
    const path = `/${chain.chainId}`;
    const existing = routes.get(path);
    if (existing === undefined) {
      routes.set(path, chain.endpoint);
    } else if (existing !== chain.endpoint) {
      shadowed.push({ chain, path });
    }
  }
  return { routes, shadowed };
};

export interface ChainsOptions {
  readonly configs: readonly ChainConfig[];
  readonly shared: Omit<Shared, "onWrongChain">;
  readonly createChain: CreateChain;
  /** Time for the requests of a replaced chain to end. */
  readonly drainTimeoutMs: number;
  /** Called with the routes after each change. */
  onRoutes(routes: ReadonlyMap<string, Endpoint>): void;
}

/** All chains of the process. */
export interface Chains {
  readonly current: readonly ServedChain[];
  readonly routes: ReadonlyMap<string, Endpoint>;
  /** Whether the chain has its genesis and a first head. */
  isKnown(chain: ServedChain): boolean;
  /** Resolves when all chains are known. */
  readonly ready: Promise<void>;
  /**
   * Replaces the chains. Each changed chain is started beside the old one, and replaces it after its first head.
   * Requests in flight end on the old chain.
   * Rejects with ConfigError, and changes nothing, if a new chain does not start, or at an abort before that.
   */
  replace(configs: readonly ChainConfig[], signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

class ReplaceableChains implements Chains {
  readonly #options: ChainsOptions;
  readonly #ready = Promise.withResolvers<void>();
  readonly #retiring = new Set<Promise<void>>();
  /** Chains whose shared chain id was logged. */
  readonly #loggedShadowed = new WeakSet<ActiveChain>();
  #active: readonly ActiveChain[] = [];
  #routes: ReadonlyMap<string, Endpoint> = new Map();
  #isClosed = false;

  constructor(options: ChainsOptions) {
    this.#options = options;
    this.#active = options.configs.map((config) => this.#start(config));
    for (const active of this.#active) {
      void active.beginState([]);
    }
    this.#publish();
  }

  get current(): readonly ServedChain[] {
    return this.#active.map(({ chain }) => chain);
  }

  get routes(): ReadonlyMap<string, Endpoint> {
    return this.#routes;
  }

  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  isKnown(chain: ServedChain): boolean {
    return this.#active.some((active) => active.chain === chain && active.isKnown);
  }

  async replace(configs: readonly ChainConfig[], signal: AbortSignal): Promise<void> {
    const before = this.#active;
    const next = configs.map(
      (config) => before.find((active) => isDeepStrictEqual(active.config, config)) ?? this.#start(config),
    );
    const started = next.filter((active) => !before.includes(active));
    try {
      await Promise.all(started.map((active) => active.untilReady(`chains[${next.indexOf(active)}]`, signal)));
      await Promise.all(started.map((active) => active.catchUp(before, signal)));
    } catch (error) {
      await this.#discard(started);
      throw error;
    }
    // From here on, the predecessors follow no state any more.
    await Promise.all(started.map((active) => active.beginState(before)));
    if (this.#isClosed) {
      return this.#discard(started);
    }
    this.#active = next;
    this.#publish();
    for (const active of before.filter((each) => !next.includes(each))) {
      this.#retire(active);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#active.map(({ chain }) => chain.close()));
    await Promise.all(this.#retiring);
  }

  #start(config: ChainConfig): ActiveChain {
    const { shared, createChain } = this.#options;
    const onKnown = (active: ActiveChain): void => {
      if (this.#active.includes(active)) {
        this.#publish();
      }
    };
    return new ActiveChain(config, shared, { createChain, onKnown });
  }

  #publish(): void {
    const { routes, shadowed } = createChainRoutes(this.#active);
    for (const { chain, path } of shadowed) {
      this.#logShadowed(chain, path);
    }
    this.#routes = routes;
    this.#options.onRoutes(routes);
    if (this.#active.every(({ isKnown }) => isKnown)) {
      this.#ready.resolve();
    }
  }

  #logShadowed(chain: ActiveChain, path: string): void {
    if (!chain.isKnown || this.#loggedShadowed.has(chain)) {
      return;
    }
    this.#loggedShadowed.add(chain);
    this.#options.shared.telemetry.log.warn(
      { chain: chain.config.name, path },
      "the path of this chain id belongs to another chain: this chain is served under its name only",
    );
  }

  async #discard(chains: readonly ActiveChain[]): Promise<void> {
    await Promise.all(chains.map(({ chain }) => chain.close()));
    for (const chain of chains) {
      await this.#removeMetrics(chain);
    }
  }

  #retire(active: ActiveChain): void {
    const retire = async (): Promise<void> => {
      await active.drain(this.#options.drainTimeoutMs);
      await this.#removeMetrics(active);
    };
    const retired = retire().finally(() => this.#retiring.delete(retired));
    this.#retiring.add(retired);
  }

  /** Removes the series of a chain, except those that its successor sets too. */
  async #removeMetrics({ config }: ActiveChain): Promise<void> {
    const { registry } = this.#options.shared.telemetry;
    const successor = this.#active.find(({ chain }) => chain.name === config.name);
    if (successor === undefined) {
      return removeMetricSeries(registry, config.name);
    }
    const names = new Set(successor.chain.upstreams.nodes.map(({ name }) => name));
    for (const name of config.nodes.map(nodeName)) {
      if (!names.has(name)) {
        await removeMetricSeries(registry, config.name, name);
      }
    }
  }
}

/** Starts the chains. */
export const createChains = (options: ChainsOptions): Chains => new ReplaceableChains(options);
