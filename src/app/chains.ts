import { isDeepStrictEqual } from "node:util";
import { ConfigError } from "../config/readConfig.ts";
import type { ChainConfig } from "../config/schema.ts";
import { errorText } from "../core/errorText.ts";
import { timeoutSignal } from "../core/lazySignal.ts";
import { createChainRoutes } from "../http/chainRoutes.ts";
import type { Endpoint } from "../http/endpoint.ts";
import { nodeName } from "../nodes/nodeConfig.ts";
import { removeMetricSeries } from "../telemetry/promClient.ts";
import { Chain } from "./chain.ts";
import type { Shared } from "./shared.ts";

/** All chains of the process. */
export class Chains {
  readonly #shared: Shared;
  readonly #drainTimeoutMs: number;
  readonly #onRoutes: (routes: ReadonlyMap<string, Endpoint>) => void;
  readonly #ready = Promise.withResolvers<void>();
  readonly #retiring = new Set<Promise<void>>();
  /** Chains whose shared chain id was logged. */
  readonly #loggedShadowed = new WeakSet<Chain>();
  #active: readonly Chain[] = [];
  #routes: ReadonlyMap<string, Endpoint> = new Map();
  readonly #closing = new AbortController();
  #replacing: Promise<void> | undefined;

  /** The requests of a replaced chain have `drainTimeoutMs` to end. `onRoutes` is called with the routes after each change. */
  constructor(
    configs: readonly ChainConfig[],
    shared: Shared,
    drainTimeoutMs: number,
    onRoutes: (routes: ReadonlyMap<string, Endpoint>) => void,
  ) {
    this.#shared = shared;
    this.#drainTimeoutMs = drainTimeoutMs;
    this.#onRoutes = onRoutes;
    this.#active = configs.map((config) => this.#create(config, undefined));
    for (const chain of this.#active) {
      chain.measured.show();
      void chain.start();
    }
    this.#publish();
  }

  get current(): readonly Chain[] {
    return this.#active;
  }

  get routes(): ReadonlyMap<string, Endpoint> {
    return this.#routes;
  }

  /** Resolves when all chains are known. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /**
   * Replaces the chains. Each changed chain is started beside the old one, and replaces it after its first head.
   * Requests in flight end on the old chain.
   * Rejects with ConfigError, and changes nothing, if a new chain does not start, or at an abort before that.
   */
  replace(configs: readonly ChainConfig[], signal: AbortSignal): Promise<void> {
    this.#replacing = this.#replace(configs, AbortSignal.any([signal, this.#closing.signal]));
    return this.#replacing;
  }

  async #replace(configs: readonly ChainConfig[], signal: AbortSignal): Promise<void> {
    const before = this.#active;
    const predecessorOf = ({ name }: Pick<ChainConfig, "name">) => before.find((chain) => chain.name === name);
    const next = configs.map(
      (config) =>
        before.find((chain) => isDeepStrictEqual(chain.config, config)) ?? this.#create(config, predecessorOf(config)),
    );
    const started = next.filter((chain) => !before.includes(chain));
    try {
      await Promise.all(started.map((chain) => untilReady(chain, `chains[${next.indexOf(chain)}]`, signal)));
      await Promise.all(
        started.map((chain) => {
          const served = predecessorOf(chain)?.upstreams.heads;
          return served && chain.upstreams.heads.catchUpWith(served, signal);
        }),
      );
    } catch (error) {
      await this.#discard(started);
      throw error;
    }
    // From here on, the predecessors follow no state any more.
    await Promise.all(started.map((chain) => chain.start()));
    if (this.#closing.signal.aborted) {
      return this.#discard(started);
    }
    this.#active = next;
    this.#publish();
    const replaced = before.filter((chain) => !next.includes(chain));
    for (const { measured } of replaced) {
      measured.hide();
    }
    for (const { measured } of started) {
      measured.show();
    }
    for (const chain of replaced) {
      this.#retire(chain);
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error("forebay is closed"));
    await Promise.all(this.#active.map((chain) => chain.end()));
    // Its caller gets the error. Chains that have begun are ended with it, and save what they took over.
    await this.#replacing?.catch(() => undefined);
    await Promise.all(this.#retiring);
  }

  #create(config: ChainConfig, before: Chain | undefined): Chain {
    const chain = new Chain(config, this.#shared, before);
    const onKnown = (): void => {
      if (this.#active.includes(chain)) {
        this.#publish();
      }
    };
    // It rejects if the chain was ended before.
    chain.ready.then(onKnown, () => undefined);
    return chain;
  }

  #publish(): void {
    const { routes, shadowed } = createChainRoutes(this.#active);
    for (const { chain, path } of shadowed) {
      this.#logShadowed(chain, path);
    }
    this.#routes = routes;
    this.#onRoutes(routes);
    if (this.#active.every(({ isKnown }) => isKnown)) {
      this.#ready.resolve();
    }
  }

  #logShadowed(chain: Chain, path: string): void {
    if (!chain.isKnown || this.#loggedShadowed.has(chain)) {
      return;
    }
    this.#loggedShadowed.add(chain);
    this.#shared.telemetry.log.warn(
      { chain: chain.config.name, path },
      "the path of this chain id belongs to another chain: this chain is served under its name only",
    );
  }

  async #discard(chains: readonly Chain[]): Promise<void> {
    await Promise.all(chains.map((chain) => chain.end()));
    for (const chain of chains) {
      await this.#removeMetrics(chain);
    }
  }

  #retire(chain: Chain): void {
    const retire = async (): Promise<void> => {
      await chain.drain(this.#drainTimeoutMs);
      await this.#removeMetrics(chain);
    };
    const retired = retire().finally(() => this.#retiring.delete(retired));
    this.#retiring.add(retired);
  }

  /** Removes the series of a chain, except those that its successor sets too. */
  async #removeMetrics({ config }: Chain): Promise<void> {
    const { registry } = this.#shared.telemetry;
    const successor = this.#active.find(({ name }) => name === config.name);
    if (successor === undefined) {
      return removeMetricSeries(registry, config.name);
    }
    const names = new Set(successor.upstreams.nodes.map(({ name }) => name));
    for (const name of config.nodes.map(nodeName)) {
      if (!names.has(name)) {
        await removeMetricSeries(registry, config.name, name);
      }
    }
  }
}

/** An unreachable node is detected after five seconds. */
const READY_TIMEOUT_MS = 30_000;

/** Rejects with ConfigError if a node serves another chain, or if no node responds, or at an abort. `path` names it in the error. */
const untilReady = async (chain: Chain, path: string, signal: AbortSignal): Promise<void> => {
  const timeout = timeoutSignal(READY_TIMEOUT_MS);
  try {
    await chain.untilReady(AbortSignal.any([signal, timeout]));
  } catch (error) {
    const late = `no node of it answered within ${READY_TIMEOUT_MS / 1000} s`;
    throw new ConfigError([`${path}: ${timeout.aborted ? late : errorText(error)}`]);
  }
};
