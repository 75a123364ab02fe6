import { setTimeout as wait } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { ConfigError } from "../config/readConfig.ts";
import type { ChainConfig } from "../config/schema.ts";
import { timeoutSignal } from "../core/lazySignal.ts";
import { lagWaitMs } from "../heads/decideHead.ts";
import type { Endpoint } from "../http/endpoint.ts";
import { trackInFlight } from "../http/trackInFlight.ts";
import { nodeName } from "../nodes/nodeConfig.ts";
import { ChainTelemetry } from "../telemetry/chainTelemetry.ts";
import { removeMetricSeries } from "../telemetry/promClient.ts";
import { type ChainRuntime, createChainRuntime } from "./chainRuntime.ts";
import type { Shared } from "./shared.ts";

/** All chains of the process. */
export class Chains {
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
      active.measured.show();
      void active.beginState([]);
    }
    this.#publish();
  }

  get current(): readonly ChainRuntime[] {
    return this.#active.map(({ chain }) => chain);
  }

  get routes(): ReadonlyMap<string, Endpoint> {
    return this.#routes;
  }

  /** Resolves when all chains are known. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Whether the chain has its genesis and a first head. */
  isKnown(chain: ChainRuntime): boolean {
    return this.#active.some((active) => active.chain === chain && active.isKnown);
  }

  /** Whether a chain that is known has not restored its state yet. */
  isRestoring(chain: ChainRuntime): boolean {
    return this.#active.some((active) => active.chain === chain && active.isRestoring);
  }

  /**
   * Replaces the chains. Each changed chain is started beside the old one, and replaces it after its first head.
   * Requests in flight end on the old chain.
   * Rejects with ConfigError, and changes nothing, if a new chain does not start, or at an abort before that.
   */
  async replace(configs: readonly ChainConfig[], signal: AbortSignal): Promise<void> {
    const before = this.#active;
    const next = configs.map(
      (config) => before.find((active) => isDeepStrictEqual(active.config, config)) ?? this.#start(config),
    );
    const started = next.filter((active) => !before.includes(active));
    for (const active of started) {
      active.addKnown(before);
    }
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
      // They have what the predecessors knew.
      await Promise.all(started.map(({ chain }) => chain.knownState.save()));
      return this.#discard(started);
    }
    this.#active = next;
    this.#publish();
    const replaced = before.filter((active) => !next.includes(active));
    for (const { measured } of replaced) {
      measured.hide();
    }
    for (const { measured } of started) {
      measured.show();
    }
    for (const active of replaced) {
      this.#retire(active);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#active.map((active) => active.close()));
    await Promise.all(this.#retiring);
  }

  #start(config: ChainConfig): ActiveChain {
    const { shared } = this.#options;
    const onKnown = (active: ActiveChain): void => {
      if (this.#active.includes(active)) {
        this.#publish();
      }
    };
    return new ActiveChain(config, shared, onKnown);
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

/** An unreachable node is detected after five seconds. */
const READY_TIMEOUT_MS = 30_000;

/** A predecessor may serve a head that the chain's own nodes never had. */
const CATCH_UP_MS = 5_000;

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** A chain with its configuration, from its start to its end. */
class ActiveChain {
  readonly config: ChainConfig;
  readonly chain: ChainRuntime;
  readonly endpoint: Endpoint;
  /** Its gauges are shown while it is active. */
  readonly measured: ChainTelemetry;
  readonly #idle: () => Promise<void>;
  readonly #wrongChain = Promise.withResolvers<never>();
  #isKnown = false;
  #hasBegunState = false;

  /** `onKnown` is called once, when the chain has its genesis and a first head. */
  constructor(config: ChainConfig, shared: Omit<Shared, "onWrongChain">, onKnown: (chain: ActiveChain) => void) {
    // A node of another chain is suspended. The error matters only to `untilReady`.
    this.#wrongChain.promise.catch(() => undefined);
    this.config = config;
    this.measured = new ChainTelemetry(shared.telemetry, {
      chain: config.name,
      nodes: config.nodes.map(nodeName),
      parts: new Set(config.pending.feeds.length > 0 ? ["feed"] : []),
    });
    const { telemetry } = this.measured;
    this.chain = createChainRuntime(config, { ...shared, telemetry, onWrongChain: this.#wrongChain.reject });
    const { endpoint, idle } = trackInFlight(this.chain.endpoint);
    this.endpoint = endpoint;
    this.#idle = idle;
    this.chain.ready.then(
      () => {
        this.#isKnown = true;
        onKnown(this);
      },
      // It was closed before.
      () => undefined,
    );
  }

  /** The chain has its genesis and a first head. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** The chain id that the nodes returned, or else the configured one. */
  get chainId(): bigint | number | undefined {
    return this.#isKnown ? this.chain.upstreams.genesis.chainId : this.config.chainId;
  }

  /** Rejects with ConfigError if a node serves another chain, or if no node responds, or at an abort. `path` names it in the error. */
  async untilReady(path: string, signal: AbortSignal): Promise<void> {
    const done = new AbortController();
    const ending = AbortSignal.any([signal, done.signal]);
    const timeout = wait(READY_TIMEOUT_MS, undefined, { signal: ending }).then(() => {
      throw new Error(`no node of it answered within ${READY_TIMEOUT_MS / 1000} s`);
    });
    // It rejects when `done` aborts it, and nobody waits for it then.
    timeout.catch(() => undefined);
    try {
      await Promise.race([this.chain.ready, this.#wrongChain.promise, timeout]);
    } catch (error) {
      throw new ConfigError([`${path}: ${messageOf(error)}`]);
    } finally {
      done.abort();
    }
  }

  /** Waits until the chain has the head that its predecessor serves, so that no client sees `latest` move back. */
  async catchUp(before: readonly ActiveChain[], ending: AbortSignal): Promise<void> {
    const served = this.#predecessorIn(before)?.chain.upstreams.heads;
    const { heads } = this.chain.upstreams;
    const numberOf = (tracker: typeof heads | undefined): bigint => tracker?.current()?.latest.number ?? 0n;
    // Before, a node that lags has a vote.
    const timeoutMs = lagWaitMs((served ?? heads).blockTimeMs) + CATCH_UP_MS;
    const signal = AbortSignal.any([ending, timeoutSignal(timeoutMs)]);
    while (numberOf(heads) < numberOf(served) && !signal.aborted) {
      // The heads of a fast chain that nobody uses do not move.
      heads.markActive();
      await heads.next(signal).catch(() => undefined);
    }
  }

  /** Gives the chain the blocks of the one that it replaces, so that they are not read again. */
  addKnown(before: readonly ActiveChain[]): void {
    const predecessor = this.#predecessorIn(before);
    if (predecessor !== undefined) {
      this.chain.upstreams.heads.addKnown(predecessor.chain.upstreams.heads.sealed);
    }
  }

  /** Begins to follow state, with the values of the chain that this one replaces. */
  async beginState(before: readonly ActiveChain[]): Promise<void> {
    await this.chain.knownState.begin(this.#predecessorIn(before)?.chain.knownState);
    this.#hasBegunState = true;
  }

  get isRestoring(): boolean {
    return this.#isKnown && !this.#hasBegunState && this.chain.knownState.mayRestore;
  }

  /** Returns the chain that this one replaces. Undefined if it does not know its own chain. */
  #predecessorIn(before: readonly ActiveChain[]): ActiveChain | undefined {
    return before.find(({ chain, isKnown }) => isKnown && chain.name === this.chain.name);
  }

  /** Closes the chain after its last request, or after `drainTimeoutMs`. */
  async drain(drainTimeoutMs: number): Promise<void> {
    const idle = new AbortController();
    const timeout = wait(drainTimeoutMs, undefined, { signal: idle.signal }).catch(() => undefined);
    await Promise.race([this.#idle(), timeout]);
    idle.abort();
    await this.close();
  }

  /** Closes the chain. What is known of its state is saved before. */
  async close(): Promise<void> {
    await this.chain.knownState.save();
    await this.chain.close();
  }
}

interface ChainRoutes {
  readonly routes: ReadonlyMap<string, Endpoint>;
  /** Chains without a path of their chain id, because an earlier chain has the same id. */
  readonly shadowed: readonly { readonly chain: ActiveChain; readonly path: string }[];
}

/** Returns the paths of all chains: `/<name>`, `/<chainId>`, and `/` if there is only one chain. */
const createChainRoutes = (chains: readonly ActiveChain[]): ChainRoutes => {
  const routes = new Map<string, Endpoint>();
  const shadowed: { chain: ActiveChain; path: string }[] = [];
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

interface ChainsOptions {
  readonly configs: readonly ChainConfig[];
  readonly shared: Omit<Shared, "onWrongChain">;
  /** Time for the requests of a replaced chain to end. */
  readonly drainTimeoutMs: number;
  /** Called with the routes after each change. */
  onRoutes(routes: ReadonlyMap<string, Endpoint>): void;
}
