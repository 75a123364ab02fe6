import { createUnitTable } from "../access/providerUnits.ts";
import type { ChainConfig } from "../config/schema.ts";
import { HeadsBehind } from "../heads/headsBehind.ts";
import { RequestViews } from "../heads/requestViews.ts";
import type { Upstreams } from "../heads/upstreams.ts";
import type { Endpoint } from "../http/endpoint.ts";
import { PassThroughHandler } from "../http/passThroughHandler.ts";
import { createHandlers } from "../methods/handlers.ts";
import type { Subscriptions } from "../subscriptions/subscriptions.ts";
import { createChainDispatch } from "./chainDispatch.ts";
import { createChainEndpoint } from "./chainEndpoint.ts";
import { type ChainSources, createChainSources } from "./chainSources.ts";
import type { ChainState } from "./chainState.ts";
import { createChainSubscriptions } from "./chainSubscriptions.ts";
import type { ChainViews } from "./chainViews.ts";
import { createMethodChain } from "./methodChain.ts";
import type { Shared } from "./shared.ts";

/** One chain with its endpoint. */
export class ChainRuntime {
  readonly name: string;
  readonly upstreams: Upstreams;
  readonly views: ChainViews;
  readonly forwarded: ChainSources["forwarded"];
  readonly endpoint: Endpoint;
  readonly knownState: ChainState;
  readonly #ending: AbortController;
  readonly #subscriptions: Subscriptions;
  readonly #passthrough: PassThroughHandler | undefined;
  readonly #sources: ChainSources;

  constructor(config: ChainConfig, shared: Shared, sources: ChainSources, ending: AbortController) {
    const { server, telemetry } = shared;
    const { signal } = ending;
    const { upstreams, views } = sources;
    const behind = new HeadsBehind();
    const subscriptions = () => this.#subscriptions;
    const chain = createMethodChain({ ...sources, config, server, shared, behind, subscriptions });
    const handlers = createHandlers(chain, config.allowNamespaces, (reason) =>
      telemetry.metrics.notProven.inc({ chain: config.name, reason }),
    );
    const dispatch = createChainDispatch({
      ...{ config, server, handlers, telemetry, usages: shared.usages },
    });
    const { name, passthrough: target, upstream } = config;
    const passthrough =
      target === undefined
        ? undefined
        : new PassThroughHandler({ chain: name, target, timeoutMs: upstream.timeoutMs, telemetry });
    this.name = name;
    this.upstreams = upstreams;
    this.views = views;
    this.forwarded = sources.forwarded;
    this.knownState = sources.state;
    this.#ending = ending;
    this.#subscriptions = createChainSubscriptions({
      ...{ config, shared, upstreams, views, handlers, signal },
    });
    this.#sources = sources;
    this.#passthrough = passthrough;
    const { heads } = upstreams;
    const requestViews = new RequestViews({
      ...{ chain: name, heads, views, behind, timeoutMs: upstream.timeoutMs, bypassHeader: shared.bypassHeader },
      ...{ minViewWaitMs: server.minViewWaitMs, metrics: telemetry.metrics },
    });
    this.endpoint = createChainEndpoint({
      ...{ config, shared, upstreams, views: requestViews, dispatch, passthrough },
    });
  }

  /** Resolves when genesis and first head are known. Rejects only if the chain is closed before. */
  get ready(): Promise<void> {
    return this.views.ready;
  }

  async close(): Promise<void> {
    this.#ending.abort();
    this.#subscriptions.close();
    this.#passthrough?.close();
    await this.#sources.close();
  }
}

/** Replaces the changed units of a chain by its whole price table. */
const withPrices = (config: ChainConfig, { prices, units }: Shared["usage"]): ChainConfig => ({
  ...config,
  state: { ...config.state, units: createUnitTable(prices, units, config.state.units) },
});

/** Starts a chain: connects to its nodes, and creates its endpoint. */
export const createChainRuntime = (config: ChainConfig, shared: Shared): ChainRuntime => {
  const priced = withPrices(config, shared.usage);
  const ending = new AbortController();
  return new ChainRuntime(priced, shared, createChainSources(priced, shared, ending.signal), ending);
};
